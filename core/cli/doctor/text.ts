/** The report as text. */
import type { Style } from '../contract.ts'
import { pluralize } from '../../util/pluralize.ts'
import type { Report, Result } from './doctor.ts'

const signs = { ok: ['good', '✓'], note: ['dim', '•'], warning: ['warn', '!'], error: ['bad', '✗'] } as const

/** One line per finding, with a line below a problem that says what to do. Checks with the same finding share one entry. */
export function textOf({ checks, summary, fixed }: Report, style: Style): string {
	const width = Math.max(0, ...checks.map(({ id }) => id.length))
	const indent = ' '.repeat(width + 4)
	const groups = Object.values(
		Object.groupBy(checks, ({ level, message, fix, id }) => `${level} ${fix === null ? id : ''} ${message} ${fix}`),
	)
	const lines = groups.flatMap((group = []) => {
		const [first, ...others] = group as [Result, ...Result[]]
		const { id, level, message, fix } = first
		const [colour, sign] = signs[level]
		const line = `${style[colour](sign)} ${id.padEnd(width)}  ${style.plain(message)}`
		const same = others.length > 0 ? `${indent}${style.dim(`also: ${others.map((other) => other.id).join(', ')}`)}` : []
		return [line, same, fix === null ? [] : `${indent}${style.dim(`→ ${style.plain(fix)}`)}`].flat()
	})
	const repaired = fixed.map(({ id, message }) => `${style.good('fixed')} ${id}: ${style.plain(message)}`)
	return [...repaired, ...lines, '', verdict(summary, style)].join('\n')
}

function verdict({ error, warning, note }: Report['summary'], style: Style): string {
	const counted = [
		error > 0 && style.bad(pluralize(error, 'error')),
		warning > 0 && style.warn(pluralize(warning, 'warning')),
		note > 0 && pluralize(note, 'note'),
	].filter((part) => part !== false)
	return counted.length > 0 ? counted.join(', ') : style.good('No problems found.')
}
