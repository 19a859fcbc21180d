/** Checks, counts and answers a program's calls to the gateway. */
import { Fault, isFault, shownFault } from '../../core/errors.ts'
import { within } from '../../core/util/deadline.ts'
import { fieldsOf } from '../../core/util/is-object.ts'
import { jsonIn } from '../../core/util/json-in.ts'
import { programLimits } from '../../sandbox/host-protocol.ts'
import type { CallMessage, HostCallKind, ToHost } from '../../sandbox/host-protocol.ts'
import type { Logger } from '../../core/log/log.ts'

type What = Exclude<HostCallKind, 'log'>

export interface CallHandlers {
	/**
	 * Handles a call. `body` is `{name, args}`, `{url, init}` or `{name}`. Returns plain data, at most 2 MiB of JSON; for `fetch`
	 * `{status, url, headers, body}`. The program gets the code and message of a Fault. Must settle within its own limits, and soon
	 * after the signal aborts, which happens when the program ends in any way.
	 */
	called(what: What, body: unknown, signal: AbortSignal): Promise<unknown>
	/** Receives the program's log output: at most 100 lines of 1,000 characters per call. */
	logged(text: string): void
}

/** Time for which the end of a program waits for a call that ignores its signal. */
const STOP_WITHIN_MS = 2_000

export function answerCalls(
	id: number,
	{ called, logged }: CallHandlers,
	/** Settles when the host has read the message, which limits unread answers. */
	reply: (message: ToHost) => Promise<void>,
	log: Logger,
) {
	const controller = new AbortController()
	const inProgress = new Set<Promise<void>>()
	let last = 0
	let calls = 0
	let length = 0
	let lines = 0

	const answer = async (call: number, what: What, body: string): Promise<void> => {
		try {
			const given = readJson(body)
			if (given === undefined)
				throw new Fault('invalid_arguments', `the arguments are nested deeper than ${programLimits.depth}`)
			const text = JSON.stringify(await called(what, given, controller.signal)) ?? 'null'
			if (text.length > programLimits.answer_length) {
				throw new Fault(
					'payload_too_large',
					`the answer has ${text.length} characters, but a program may receive at most ${programLimits.answer_length}`,
				)
			}
			if (!controller.signal.aborted) await reply({ kind: 'reply', id, call, ok: true, body: text })
		} catch (error) {
			if (controller.signal.aborted) return
			if (!isFault(error)) log.error({ err: error }, `a call of a program failed: ${what}`)
			const { code, message } = shownFault(error)
			await reply({ kind: 'reply', id, call, ok: false, code, message: message.slice(0, programLimits.message_length) })
		}
	}

	const takeLine = (body: string): boolean => {
		const { text } = fieldsOf(readJson(body))
		if (typeof text !== 'string' || text.length > programLimits.log_line_length) return false
		if (++lines > programLimits.log_lines) return false
		logged(text)
		return true
	}

	return {
		/** False if the host violated the protocol. The bridge in the isolate never does, so the host is no longer trusted. */
		handle({ call, what, body }: CallMessage): boolean {
			if (body.length > programLimits.text_length) return false
			if (what === 'log') return takeLine(body)
			length += body.length
			if (length > programLimits.all_text_length || ++calls > programLimits.calls) return false
			// Numbers must increase, so that no call is answered twice.
			if (inProgress.size >= programLimits.calls_in_flight || call <= last) return false
			last = call
			const answered = answer(call, what, body).finally(() => inProgress.delete(answered))
			inProgress.add(answered)
			return true
		},
		/** Aborts running calls, and settles when they have stopped. */
		async end(): Promise<void> {
			controller.abort(new Fault('stopped', 'the program has ended'))
			await within(STOP_WITHIN_MS, 'a call', Promise.allSettled(inProgress)).catch(() =>
				log.warn(`${inProgress.size} calls of a program that has ended do not stop`),
			)
		},
	}
}

/** Parses JSON from a program's process. Undefined if it is invalid or nested too deeply. */
export function readJson(text: string): unknown {
	return isTooDeep(text) ? undefined : jsonIn(text)
}

/** V8 parses JSON of any depth, but recursive functions over it, such as `JSON.stringify`, overflow the stack. */
function isTooDeep(text: string): boolean {
	let depth = 0
	let quoted = false
	for (let at = 0; at < text.length; at++) {
		const code = text.charCodeAt(at)
		if (quoted) {
			if (code === 0x5c) at++
			else if (code === 0x22) quoted = false
		} else if (code === 0x22) quoted = true
		else if (code === 0x5b || code === 0x7b) {
			if (++depth > programLimits.depth) return true
		} else if (code === 0x5d || code === 0x7d) depth--
	}
	return false
}
