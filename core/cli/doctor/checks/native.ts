/** Packages with a compiled part. They are loaded in a separate process, since a broken one can end it. */
import { error, ok } from '../contract.ts'
import type { Check, DoctorFile, CheckContext } from '../contract.ts'
import { loadEach } from '../load-each.ts'

/** One check for each package of the core and of all plugins. */
export function nativeChecks(files: readonly DoctorFile[]): Check[] {
	const packages: Record<string, string> = { lmdb: 'keeps the data' }
	for (const file of files) Object.assign(packages, file.packages)
	const names = Object.keys(packages).toSorted()
	return names.map((name) => ({
		id: `native.${name}`,
		about: `the compiled package ${name}, which ${packages[name]}`,
		async run(context) {
			const loaded = await context.once('native packages', () => load(names, context))
			const problem = loaded.get(name)
			if (problem === null) return ok(`the package ${name} loads`)
			return error(
				`the package ${name} does not load: ${problem ?? 'it was not tried'}`,
				`reinstall it for this machine: rm -rf ${context.root}/node_modules, then npm start`,
			)
		},
	}))
}

const child = new URL('../native-child.mjs', import.meta.url)

/** The problem of each package, null if it has none. */
function load(names: string[], { root, env, signal }: CheckContext): Promise<Map<string, string | null>> {
	const problemOf = (_: string, how: string): string => `it ends the process (${how})`
	return loadEach(names, { child, args: [root], env: { PATH: env.PATH }, signal, problemOf })
}
