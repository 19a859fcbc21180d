/** Checks of third-party plugins. Their code runs in separate processes: it may hang, end its process or export something else. */
import { refusedPlace } from '../../process/shared-home.ts'
import { startChild } from '../child.ts'
import { pluginFiles } from '../third-party.ts'
import type { PluginFile } from '../third-party.ts'
import { ok, usualLimits, warning } from './contract.ts'
import type { Check, CheckContext, DoctorLimits, Finding } from './contract.ts'
import { programOf } from '../../util/own-code.ts'

export type HomeAndEnv = Pick<CheckContext, 'home' | 'env'> & { limits?: Partial<DoctorLimits> }

/** Checks of one plugin; further ones are omitted. */
const CHECKS_LIMIT = 100
/** What check-child.ts reports. */
export type CheckReport =
	| { checks: { id: string; about: string }[] }
	| { problem: string }
	| { id: string; findings: Finding[] }

const child = programOf(new URL('./check-child.ts', import.meta.url))

/** The checks of the plugins that gateway.yaml switches on, and a check that reports which of their files cannot be used. */
export async function thirdPartyChecks(place: HomeAndEnv): Promise<Check[]> {
	// The check plugins.mode reports code that other users can change.
	const files = (await pluginFiles(place.home, 'doctor')).filter(({ folder }) => !refusedPlace(folder, place))
	const listed = await Promise.all(files.map(async (file) => ({ file, ...(await list(file, place)) })))
	const broken: Check = {
		id: 'plugin.checks',
		about: 'the checks of third-party plugins',
		async run() {
			const findings = listed.flatMap(({ file: { name, file }, problem }): Finding[] =>
				problem === null ? [] : [warning(`plugin ${name}: its checks do not load: ${problem}`, `correct ${file}`)],
			)
			if (findings.length > 0) return findings
			return listed.length > 0 ? ok(`the checks of all third-party plugins load (${listed.length})`) : []
		},
	}
	const checks = listed.flatMap(({ file, checks: own }) =>
		own.slice(0, CHECKS_LIMIT).map(({ id, about }): Check => ({
			id,
			about,
			async run(context) {
				const found = await context.once(`checks of ${file.name}`, () => runAll(file, context))
				return found.get(id) ?? warning('the check did not end', `correct ${file.file}, then check again`)
			},
		})),
	)
	return [...checks, broken]
}

async function list(file: PluginFile, place: HomeAndEnv) {
	let checks: { id: string; about: string }[] = []
	let problem: string | null = null
	const how = await inChild('list', file, place, (report) => {
		if ('checks' in report) checks = report.checks
		if ('problem' in report) problem = report.problem
	})
	return { checks, problem: problem ?? (how === 'exit code 0' ? null : `its code does not finish (${how})`) }
}

async function runAll(file: PluginFile, context: CheckContext): Promise<Map<string, Finding[]>> {
	const found = new Map<string, Finding[]>()
	await inChild('run', file, context, (report) => {
		if ('findings' in report) found.set(report.id, report.findings)
	})
	return found
}

/** Returns how the process ended: `exit code 0` means success. */
async function inChild(
	what: 'list' | 'run',
	{ name, file }: PluginFile,
	{ home, env, limits, signal }: HomeAndEnv & { signal?: AbortSignal },
	listener: (report: CheckReport) => void,
): Promise<string> {
	const limit = AbortSignal.timeout(limits?.thirdParty ?? usualLimits.thirdParty)
	const options = { env, signal: signal ? AbortSignal.any([limit, signal]) : limit }
	const { ended } = startChild(child, [what, home, name, file], options, listener)
	return ended.catch((error: Error) => error.message)
}
