/** package-lock.json: what it names is installed as it was when it was pinned, on every platform and from any registry. */
import { readFileSync } from 'node:fs'
import t from 'tap'

const file = new URL('../../../package-lock.json', import.meta.url)

void t.test('every package has a hash, also those of other platforms, and none has an address', (t) => {
	const { packages } = JSON.parse(readFileSync(file, 'utf8')) as {
		packages: Record<string, { version?: string; integrity?: string; resolved?: string; os?: string[] }>
	}
	// The project itself is the only entry that comes from no registry.
	const pinned = Object.entries(packages).filter(([path]) => path !== '')
	const bare = pinned.filter(([, { version, integrity }]) => !version || !/^sha512-[\w+/]{86}==$/.test(integrity ?? ''))
	t.strictSame(
		bare.map(([path]) => path),
		[],
		'pin a version of which the registry has the packages of all platforms',
	)
	t.strictSame(
		pinned.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path),
		[],
		'npm install keeps the address away with the omit-lockfile-registry-resolved of .npmrc',
	)
	t.ok(pinned.some(([, { os }]) => os?.includes('win32')) && pinned.some(([, { os }]) => os?.includes('darwin')))
	t.end()
})
