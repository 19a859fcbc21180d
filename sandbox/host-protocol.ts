/**
 * The messages between the main thread and a skill host, the child process in which untrusted code runs, and their encoding. Only
 * plain data is exchanged. Messages of the child are not trusted, and checked before use.
 */
import { StringDecoder } from 'node:string_decoder'

export interface Program {
	/** An ES module without imports whose default export is `async (args, svc)`. */
	code: string
	language: 'javascript' | 'typescript'
}

/** One program and one call of it. A host works on one at a time. */
export interface ProgramOrder extends Program {
	kind: 'run'
	/** Echoed in every message about it. */
	id: number
	/** The checked arguments, as JSON. */
	args: string
}

/** Compiles the program and reports errors, without running it. */
export interface CheckOrder extends Program {
	kind: 'check'
	id: number
}

/** The limits with which a host is started; they apply to each call. */
export interface HostSettings {
	/** Memory of the isolate. */
	memory_mib: number
	/** Memory of the whole process. */
	process_mib: number
	cpu_ms: number
}

export type HostCallKind = 'primitive' | 'fetch' | 'secret' | 'log'

export type ToHost =
	| ProgramOrder
	| CheckOrder
	/** `body` is JSON. */
	| { kind: 'reply'; id: number; call: number; ok: true; body: string }
	| { kind: 'reply'; id: number; call: number; ok: false; code: string; message: string }

export type FromHost =
	/** Loaded, and an isolate is ready for the first order. */
	| { kind: 'ready' }
	/** `body` is JSON: `{name, args}`, `{url, init}`, `{name}` or `{text}`. No reply is sent to `log`. */
	| { kind: 'call'; id: number; call: number; what: HostCallKind; body: string }
	/** From now on the program only waits for answers and timers, or it computes again. At first it computes. */
	| { kind: 'waits' | 'computes'; id: number }
	/** After one of the `sandbox_…` codes, the host must be ended. */
	| ({ kind: 'done'; id: number } & ProgramOutcome)

export type CallMessage = Extract<FromHost, { kind: 'call' }>

/** The outcome of a program. `value` is JSON. */
export type ProgramOutcome = { ok: true; value: string } | { ok: false; code: HostFailure; message: string }

/** `skill_failed`: it threw; `skill_invalid`: it does not compile, or exports no function. */
export type HostFailure = 'skill_failed' | 'skill_invalid' | 'sandbox_timeout' | 'sandbox_memory' | 'sandbox_crash'

/** The outcome of a program whose process exceeds a limit; undefined while it may continue. */
export function overLimit(
	{ process_mib, cpu_ms }: HostSettings,
	used: { bytes: number; cpu_ms: number },
): ProgramOutcome | undefined {
	if (used.bytes > process_mib * 1024 * 1024) {
		const message = `its process needs more than ${process_mib} MiB of memory (skills.process_mib)`
		return { ok: false, code: 'sandbox_memory', message }
	}
	if (used.cpu_ms <= cpu_ms) return undefined
	const message = `it computed for more than ${cpu_ms / 1000} s (skills.cpu_s)`
	return { ok: false, code: 'sandbox_timeout', message }
}

/**
 * The limits of one call of a program, enforced by the bridge inside the isolate and by the main thread. Lengths are in UTF-16 code
 * units.
 */
export const programLimits = {
	/** Concurrent calls of the gateway; further ones wait inside the isolate. */
	calls_in_flight: 64,
	/** Calls of the gateway, and timers, in all. */
	calls: 1000,
	/** Of one call, and of the program's result. */
	text_length: 1024 * 1024,
	/** Of the answer to a call: a body of 1 MiB with its escapes. */
	answer_length: 2 * 1024 * 1024,
	/** Of all calls together. */
	all_text_length: 10 * 1024 * 1024,
	log_lines: 100,
	/** 4,000 more than are shown: the cut is made without knowledge of the secrets, so it may leave a part of one at the end. */
	log_line_length: 5096,
	/** Of an error's message, to the program and from it; 4,000 more than are shown, too. */
	message_length: 5096,
	/** Levels of nested objects and arrays; deeper data would overflow the stack of code that walks it. */
	depth: 100,
}
export type ProgramLimits = typeof programLimits

/** More than the longest message that either side sends: an answer of 2 MiB, escaped once more, in UTF-8. */
const MAX_LINE_BYTES = 16 * 1024 * 1024

/** Encodes a message as a line of JSON, which contains no other line break. */
export function toLine(message: ToHost | FromHost): string {
	return `${JSON.stringify(message)}\n`
}

/**
 * Returns a function that accepts bytes and passes each complete line, parsed, to `receive`. A line that is not JSON, or is too
 * long, is passed as `undefined`, and nothing after it: the other side is no longer trusted.
 */
export function fromLines(receive: (message: unknown) => void): (bytes: Buffer) => void {
	const decoder = new StringDecoder('utf8')
	let pieces: string[] = []
	let length = 0
	let broken = false

	const fail = (): void => {
		broken = true
		pieces = []
		receive(undefined)
	}
	const finish = (line: string): void => {
		let message: unknown
		try {
			message = JSON.parse(line)
		} catch {
			return fail()
		}
		receive(message)
	}
	return (bytes) => {
		let rest = decoder.write(bytes)
		for (let end = rest.indexOf('\n'); end >= 0 && !broken; end = rest.indexOf('\n')) {
			const line = pieces.join('') + rest.slice(0, end)
			pieces = []
			length = 0
			rest = rest.slice(end + 1)
			finish(line)
		}
		if (broken || rest === '') return
		pieces.push(rest)
		length += rest.length
		if (length > MAX_LINE_BYTES) fail()
	}
}
