/** package-lock.json pins the content of every package, for all platforms and any registry. */
import { readFileSync } from 'node:fs'
import t from 'tap'

const file = new URL('../../../package-lock.json', import.meta.url)

void t.test('every package has a hash, including those for other platforms, and none has an address', (t) => {
	const { packages } = JSON.parse(readFileSync(file, 'utf8')) as {
		packages: Record<string, { version?: string; integrity?: string; resolved?: string; os?: string[] }>
	}
	// Only the project itself is not from a registry.
	const pinned = Object.entries(packages).filter(([path]) => path !== '')
	const bare = pinned.filter(([, { version, integrity }]) => !version || !/^sha512-[\w+/]{86}==$/.test(integrity ?? ''))
	t.strictSame(
		bare.map(([path]) => path),
		[],
		'pin a version that the registry has for all platforms',
	)
	t.strictSame(
		pinned.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path),
		[],
		'omit-lockfile-registry-resolved in .npmrc makes npm install omit the addresses',
	)
	t.ok(pinned.some(([, { os }]) => os?.includes('win32')) && pinned.some(([, { os }]) => os?.includes('darwin')))
	t.end()
})
