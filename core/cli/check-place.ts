/**
 * Checks a valid configuration on the machine and in the home where it would be used: its ports, and the checks in plugins'
 * `doctor.ts`.
 */
import { warn } from '../../config/read.ts'
import type { LateProblem } from '../../config/read.ts'
import type { Config } from '../../config/types.ts'
import { refuse } from '../host/config.ts'
import { listenProblem } from '../http/listening.ts'
import { tryListening } from './try-listening.ts'
import { readRuntimeFile } from '../process/runtime-file.ts'
import { NotChecked } from './doctor/contract.ts'
import type { DoctorFile, PlaceCheck } from './doctor/contract.ts'
import { doctorFiles } from './doctor/doctor-files.ts'
import { openCheckContext } from './doctor/check-context.ts'

export interface PlaceReport {
	/** Problems that the gateway accepts, each as `file:line:column: path: what is wrong`. */
	warnings: string[]
	/** What could not be checked, and why. */
	notes: string[]
}

export interface PlaceRequest {
	home: string
	env: Readonly<NodeJS.ProcessEnv>
	/** Whether to check the ports. Default true. */
	ports?: boolean
}

/** Throws the problems for which the gateway of this home would refuse the configuration, in the form of `readConfig`. */
export async function checkPlace(config: Config, { home, env, ports = true }: PlaceRequest): Promise<PlaceReport> {
	await using context = await openCheckContext({ home, env })
	const problems: LateProblem[] = []
	const warnings: LateProblem[] = []
	const notes: string[] = []
	const files = await doctorFiles(config)
	for (const { about, run } of [...(ports ? [portsOf(files)] : []), ...files.flatMap(({ place = [] }) => place)]) {
		try {
			for (const { isRefused = false, ...problem } of await run(config, context))
				(isRefused ? problems : warnings).push(problem)
		} catch (error) {
			if (!(error instanceof NotChecked)) throw error
			notes.push(`not checked: ${about} (${error.message}; ${error.fix})`)
		}
	}
	if (problems.length > 0) throw refuse(config, problems)
	return { warnings: warnings.map((problem) => warn(config, problem)), notes }
}

function portsOf(files: readonly DoctorFile[]): PlaceCheck {
	return {
		about: 'ports',
		async run(config, context) {
			const { host } = config.server
			const inForce: Partial<Config> | undefined = (await context.gateway())
				? readRuntimeFile(context.home)?.settings?.in_force
				: undefined
			const legacy = files.some(({ ports }) => ports?.(config).some(({ setting }) => setting === 'legacy.port'))
			const wanted = [
				{ address: 'main' as const, port: config.server.port, held: inForce?.server?.port },
				...(legacy ? [{ address: 'legacy' as const, port: config.legacy.port, held: inForce?.legacy?.port }] : []),
			]
			for (const { address, port, held } of wanted) {
				// A running gateway of this home holds its own ports.
				if (port === held && host === inForce?.server?.host) continue
				const error = await tryListening({ host, port })
				// Only the first, as the gateway reports it.
				if (error) return [{ ...listenProblem(error, address, { host, port }), isRefused: true }]
			}
			return []
		},
	}
}
