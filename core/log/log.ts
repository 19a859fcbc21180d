import { pino } from 'pino'
import type { Logger as PinoLogger } from 'pino'
import { logFields } from '../util/context.ts'
import { openRedactor } from '../redactor/redactor.ts'
import type { Writer } from '../redactor/redactor.ts'
import { isJournal, withPriority } from './journal.ts'
import { openLineWriter } from './line-writer.ts'

export type Logger = PinoLogger

interface LogOptions {
	level: string
	/** `auto`: lines for people on a terminal, JSON otherwise. */
	format: 'auto' | 'json' | 'pretty'
}

/**
 * The log goes to standard error, because standard output is for a command's result. Each line is redacted as a whole, so
 * that no field, message or stack is missed: the gateway's own secrets, and those of the agents that the line names. A line
 * that is written during a request or a run has its id. Under systemd, JSON lines have the journal's priorities.
 */
export function openLog(options: LogOptions, redactor = openRedactor()): Logger {
	const pretty = options.format === 'pretty' || (options.format === 'auto' && process.stderr.isTTY === true)
	const mixin = (): object => ({ ...logFields() }) // a copy: pino adds the line's own fields to it
	const settings = { level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime, redact, mixin }
	const clean = (line: string): string => redactor.of(writersOf(line)).text(line, 'log')
	const shown = isJournal(process.env) ? (line: string) => withPriority(clean(line)) : clean
	const formed = pretty ? (line: string) => forPeople(clean(line)) : shown
	if (process.stderr.isTTY) return pino(settings, { write: (line: string) => process.stderr.write(formed(line)) })
	const lines = openLineWriter({
		onDropped: (count, code) =>
			log.warn({ code }, `${count} lines of the log are missing: standard error accepted no more (${code}); ${ADVICE}`),
	})
	const log = pino(settings, { write: (line: string) => lines.write(formed(line)) })
	return log
}

const ADVICE = 'check the disk of the log, or the program that reads it'

const AGENT = /"agent(?:_id)?":"([^"]{1,64})"/g

function writersOf(line: string): Writer[] {
	return ['gateway', ...Array.from(line.matchAll(AGENT), ([, agent]): Writer => ({ agent: agent as string }))]
}

/** Fields that never reach a log line, wherever an object that carries them is logged. */
const redact = [
	'authorization',
	'*.authorization',
	'headers.authorization',
	'token',
	'*.token',
	'api_key',
	'*.api_key',
	'value',
]

const levels: Record<string, string> = { 10: 'trace', 20: 'debug', 30: 'info ', 40: 'WARN ', 50: 'ERROR', 60: 'FATAL' }

function forPeople(line: string): string {
	let fields: Record<string, unknown>
	try {
		fields = JSON.parse(line) as Record<string, unknown>
	} catch {
		return escapeControls(line.trimEnd()) + '\n' // redacting a secret that spans two fields breaks the JSON
	}
	const { time, level, msg, err, ...rest } = fields
	const named = Object.entries(rest).map(
		([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
	)
	const stack = err && typeof err === 'object' && 'stack' in err ? `\n${String(err.stack)}` : ''
	// An error's message is part of its stack, and may come from outside.
	const text = escapeControls([msg, ...named].join('  ') + stack).replaceAll('\\x0a', '\n               ')
	return `${String(time).slice(11, 19)} ${levels[String(level)] ?? level} ${text}\n`
}

/** Text from outside must not move the cursor or forge a line on the operator's terminal. */
function escapeControls(text: string): string {
	// oxlint-disable-next-line no-control-regex -- matches control characters on purpose
	return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`)
}
