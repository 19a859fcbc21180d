/** Packages with a compiled part. They are loaded in a process of their own, since a broken one can end it. */
import { startChild } from '../../child.ts'
import { error, ok } from '../contract.ts'
import type { Check, DoctorFile, CheckContext } from '../contract.ts'

/** Those of the core and of all plugins. */
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

interface Loading {
	name: string
	problem: string | null
}

/** Returns what is wrong with each, null if nothing is. */
async function load(names: string[], context: CheckContext): Promise<Map<string, string | null>> {
	const results = new Map<string, string | null>()
	for (let left = names; left.length > 0 && !context.signal.aborted; left = left.filter((name) => !results.has(name))) {
		const options = { env: { PATH: context.env.PATH }, signal: context.signal }
		const { ended } = startChild<Loading>(child, [context.root, ...left], options, ({ name, problem }) => {
			results.set(name, problem)
		})
		const how = await ended
		// The package that was being loaded; the rest is tried in another process.
		const broken = left.find((name) => !results.has(name))
		if (broken !== undefined) results.set(broken, `it ends the process (${how})`)
	}
	return results
}
