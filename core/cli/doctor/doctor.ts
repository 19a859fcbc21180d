/** Runs all checks in parallel, each with a deadline. A failed check does not end the others. */
import { Late, within } from '../../util/deadline.ts'
import { messageOf } from '../../errors.ts'
import { checksOf } from './catalogue.ts'
import { NotChecked, note, warning } from './contract.ts'
import type { Check, Finding, Level } from './contract.ts'
import { openCheckContext } from './check-context.ts'
import type { OpenCheckContext, CheckContextOptions } from './check-context.ts'

export interface ExamineOptions extends CheckContextOptions {
	/** The result of `checksOf`, if the caller has it already. */
	all?: readonly Check[]
	/** Ids of checks; absent: all. */
	only?: readonly string[]
	/** Fix what can be fixed without touching data, and check again. */
	fix?: boolean
}

export type Result = { id: string } & Omit<Finding, 'repair'>

export interface Report {
	/** In the order of the catalogue; a check may have several findings. */
	checks: Result[]
	summary: Record<Level, number>
	/** What was fixed. */
	fixed: { id: string; message: string }[]
}

/** Never throws because of a finding. The ids in `only` must exist. */
export async function examine({ all, only, fix = false, ...options }: ExamineOptions): Promise<Report> {
	const wanted = (all ?? (await checksOf(options))).filter((check) => !only || only.includes(check.id))
	let examined = await examineOnce(wanted, options)
	const fixed: Report['fixed'] = []
	if (fix) {
		for (const one of examined) if (one.finding.repair) fixed.push({ id: one.id, message: await repair(one.finding) })
		// A fixed problem may have hidden another one.
		if (fixed.length > 0) examined = await examineOnce(wanted, options)
	}
	const checks = examined.map(({ id, finding: { level, message, fix: todo } }) => ({ id, level, message, fix: todo }))
	const summary: Report['summary'] = { ok: 0, note: 0, warning: 0, error: 0 }
	for (const { level } of checks) summary[level]++
	return { checks, summary, fixed }
}

async function examineOnce(checks: readonly Check[], options: CheckContextOptions) {
	await using context = await openCheckContext(options)
	const examined = checks.map(async (check) =>
		(await findingsOf(check, context)).map((finding) => ({ id: check.id, finding })),
	)
	return (await Promise.all(examined)).flat()
}

/** The findings of one check, with texts that may be printed. Never throws, and ends within its deadline. */
export async function findingsOf(check: Check, context: OpenCheckContext): Promise<Finding[]> {
	const findings = await runCheck(check, context)
	return findings.map((finding) => {
		const { message, fix } = finding
		return { ...finding, message: context.printable(message), fix: fix === null ? null : context.printable(fix) }
	})
}

async function runCheck(check: Check, context: OpenCheckContext): Promise<Finding[]> {
	const limit = context.limits.check
	try {
		return [await within(limit, check.id, check.run(context))].flat()
	} catch (thrown) {
		if (thrown instanceof NotChecked) return [note(`not checked: ${thrown.message}`, thrown.fix)]
		if (thrown instanceof Late) {
			const todo = `see whether a disk or a server hangs, then check again: svc doctor --only ${check.id}`
			return [warning(`${check.about}: it took longer than ${limit / 1000} s`, todo)]
		}
		return [
			warning(
				`${check.about}: the check failed (${messageOf(thrown)})`,
				`fix what the message names, then check again: svc doctor --only ${check.id}`,
			),
		]
	}
}

async function repair({ repair: act }: Finding): Promise<string> {
	try {
		return (await act?.()) ?? ''
	} catch (thrown) {
		return `could not be fixed: ${messageOf(thrown)}`
	}
}
