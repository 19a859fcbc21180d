/**
 * Loads the checks of one third-party plugin, and lists or runs them, in a process of its own.
 *
 *     node check-child.ts list|run HOME PLUGIN FILE
 */
import { pathToFileURL } from 'node:url'
import { sendToParent } from '../child.ts'
import type { Check, DoctorFile, Finding, Level } from './contract.ts'
import type { CheckReport } from './third-party.ts'

const [what, home = '', plugin = '', file = ''] = process.argv.slice(2)
const levels: readonly Level[] = ['ok', 'note', 'warning', 'error']

process.on('disconnect', () => process.exit(0))
try {
	const { default: doctor } = (await import(pathToFileURL(file).href)) as { default?: DoctorFile }
	const checks = checksIn(doctor)
	if (what === 'list') await sendToParent<CheckReport>({ checks: checks.map(({ id, about }) => ({ id, about })) })
	else await runAll(checks)
} catch (error) {
	await sendToParent<CheckReport>({
		problem: error instanceof Error ? error.message : 'it threw something that is not an error',
	})
}
process.exit(0)

/** Loads its modules itself: `list` does not need them, and runs with each `svc doctor`. */
async function runAll(checks: readonly Check[]): Promise<void> {
	const [{ findingsOf }, { openCheckContext }] = await Promise.all([
		import('./doctor.ts'),
		import('./check-context.ts'),
	])
	await using context = await openCheckContext({ home, env: process.env })
	await Promise.all(
		checks.map(async (check) => {
			const findings = await findingsOf(check, context).catch((error: Error): Finding[] => [
				{ level: 'warning', message: `what it returned is not a finding: ${error.message}`, fix: `correct ${file}` },
			])
			await sendToParent<CheckReport>({ id: check.id, findings: findings.map(plain) })
		}),
	)
}

/** Throws an error that says what to change. */
function checksIn(doctor: DoctorFile | undefined): readonly Check[] {
	const checks = doctor?.checks
	if (!Array.isArray(checks)) throw new Error('it must default-export an object with a list of checks')
	for (const { id, about, run } of checks as readonly Partial<Check>[]) {
		if (typeof id !== 'string' || !id.startsWith(`${plugin}.`) || !/^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(id))
			throw new Error(`the id of a check must begin with the plugin's name, such as ${plugin}.reachable, not ${id}`)
		if (typeof about !== 'string' || about === '') throw new Error(`the check ${id} needs a description (about)`)
		if (typeof run !== 'function') throw new Error(`the check ${id} needs a function run(context)`)
	}
	return checks as readonly Check[]
}

/** Only data can be sent to the doctor. */
function plain({ level, message, fix }: Finding): Finding {
	return { level: levels.includes(level) ? level : 'warning', message, fix }
}
