import { globSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

/** The root of the repository. */
export const root = new URL('../../', import.meta.url)

/**
 * Batches with explicit patterns. The longest ones come first, so that none runs alone at the end. The fewer there are, the less CPU time
 * they take: a process needs two seconds until its code is loaded and compiled. Tests that start many processes are faster in a small
 * batch, since starting one takes longer the more memory the batch uses.
 */
const named = {
	cluster: ['test/{cluster,plugins/cluster}/**/*.test.ts'],
	cli: ['test/core/cli/**/*.test.ts', 'test/plugins/runs/cli/*.test.ts', 'test/plugins/models/cli/*.test.ts'],
	crash: ['test/{crash,homes,reload,skills-examples,core/backup}/**/*.test.ts', 'test/plugins/backups/**/*.test.ts'],
	config: [
		'test/config/**/*.test.ts',
		'test/plugins/{agents,attachments,auth,configuration,system,usage}/**/*.test.ts',
		'test/plugins/{models,runs}/*.test.ts',
	],
	core: [
		'test/architecture/**/*.test.ts',
		'test/core/*.test.ts',
		'test/core/{client,engines,events,fetch,host,http,log,process,redactor,runs,store,upgrade,util}/**/*.test.ts',
	],
	mcp: ['test/plugins/{mcp,mcp-server}/**/*.test.ts'],
	channels: ['test/plugins/{channels,discord,telegram}/**/*.test.ts', 'test/contracts/**/*.test.ts'],
	'spec-r': ['test/spec/[r-z]*.test.ts'],
	'spec-a': ['test/spec/[a-q]*.test.ts'],
	browser: ['test/browser/**/*.test.ts'],
	docs: ['test/docs/**/*.test.ts', 'test/{compatibility,release}/**/*.test.ts'],
	sandbox: ['test/sandbox/**/*.test.ts'],
}

/** The test files that share a process, by batch. `outside`: the tests of plugins that no other batch contains. */
export const batches: Record<string, string[]> = {
	outside: ['test/interop/*.test.ts', ...otherPlugins()],
	...named,
}

/**
 * Batches with temporary files on the disk: they test how data is written, or kill gateways during writes and check the data.
 * On a file system in memory, the store extends its file in another way (core/store/lmdb/reserve.ts).
 */
export const onDisk: ReadonlySet<string> = new Set(['core', 'crash'])

/** The matching test files, sorted, with slashes between folders. */
export function filesOf(patterns: string[]): string[] {
	// `npm run interop` installs packages below test/, some with tests of their own.
	return globSync(patterns, { cwd: fileURLToPath(root), exclude: ['**/node_modules/**'] })
		.map((path) => path.replaceAll('\\', '/'))
		.toSorted()
}

function otherPlugins(): string[] {
	const taken = new Set(Object.values(named).flatMap(filesOf))
	return filesOf(['test/plugins/**/*.test.ts']).filter((path) => !taken.has(path))
}
