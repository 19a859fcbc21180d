/** The examination: all checks side by side, each within its deadline, and none can end it. */
import { Late, within } from '../deadline.ts'
import { messageOf } from '../errors.ts'
import { checksOf } from './catalogue.ts'
import { NotLooked, note, warning } from './contract.ts'
import type { Check, Finding, Level } from './contract.ts'
import { openPatient } from './patient.ts'
import type { OpenPatient, PatientOptions } from './patient.ts'

export interface ExamineOptions extends PatientOptions {
	/** Ids of checks; all where absent. */
	only?: readonly string[]
	/** Mend what can be mended without touching data, and look again. */
	fix?: boolean
}

export interface Result {
	id: string
	level: Level
	message: string
	fix: string | null
}

export interface Report {
	/** In the order of the catalogue; a check may have several findings. */
	checks: Result[]
	summary: Record<Level, number>
	/** What was mended. */
	fixed: { id: string; message: string }[]
}

const DEADLINE_MS = 5_000

/** Never throws for what it finds. `only` holds ids that exist. */
export async function examine({ only, fix = false, ...options }: ExamineOptions): Promise<Report> {
	const all = await checksOf()
	const wanted = all.filter((check) => !only || only.includes(check.id))
	let examined = await examineOnce(wanted, options)
	const fixed: Report['fixed'] = []
	if (fix) {
		for (const one of examined) if (one.finding.mend) fixed.push({ id: one.id, message: await mend(one.finding) })
		// What was mended may have hidden something else.
		if (fixed.length > 0) examined = await examineOnce(wanted, options)
	}
	const checks = examined.map(({ id, finding: { level, message, fix: todo } }) => ({ id, level, message, fix: todo }))
	const summary: Report['summary'] = { ok: 0, note: 0, warning: 0, error: 0 }
	for (const { level } of checks) summary[level]++
	return { checks, summary, fixed }
}

interface Examined {
	id: string
	finding: Finding
}

async function examineOnce(checks: readonly Check[], options: PatientOptions): Promise<Examined[]> {
	await using patient = openPatient(options)
	const results = await Promise.all(checks.map((check) => resultsOf(check, patient)))
	return results.flat()
}

async function resultsOf(check: Check, patient: OpenPatient): Promise<Examined[]> {
	const findings = await look(check, patient)
	return findings.map((finding) => {
		const { message, fix } = finding
		const shown = { ...finding, message: patient.shown(message), fix: fix === null ? null : patient.shown(fix) }
		return { id: check.id, finding: shown }
	})
}

async function look(check: Check, patient: OpenPatient): Promise<Finding[]> {
	try {
		return [await within(DEADLINE_MS, check.id, check.run(patient))].flat()
	} catch (thrown) {
		if (thrown instanceof NotLooked) return [note(`not looked at: ${thrown.message}`, thrown.fix)]
		if (thrown instanceof Late) {
			const todo = `see whether a disk or a server hangs, then look again: svc doctor --only ${check.id}`
			return [warning(`${check.about}: it took longer than ${DEADLINE_MS / 1000} s to look`, todo)]
		}
		return [
			warning(
				`${check.about}: looking failed (${messageOf(thrown)})`,
				`mend what the message names, then look again: svc doctor --only ${check.id}`,
			),
		]
	}
}

async function mend({ mend: act }: Finding): Promise<string> {
	try {
		return (await act?.()) ?? ''
	} catch (thrown) {
		return `could not be mended: ${messageOf(thrown)}`
	}
}
