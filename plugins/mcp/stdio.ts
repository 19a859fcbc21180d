/** The transport of a stdio server: one JSON message per line on the standard input and output of its process. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import type { ServerProcess } from './processes.ts'
import type { Tail } from './tail.ts'
import { openThrottle } from './throttle.ts'

/** Limit of a received message. Twice as much is buffered for a server that does not read its input. */
export const FRAME_LIMIT_BYTES = 4 * 1024 * 1024
/** Limit of messages in a batch: a message may have two bytes, and each takes time on the gateway's main thread. */
const LIST_LIMIT = 100
const UNREAD_LIMIT_BYTES = 2 * FRAME_LIMIT_BYTES
const LINE_LIMIT = 2_000
const LAST_OUTPUT_MS = 250
const NEWLINE = 0x0a

/** `stderrTail`: receives the standard error of the process, and output that is not a message. */
export function stdioTransport(process: ServerProcess, stderrTail: Tail): Transport {
	const { stdin, stdout, stderr } = process.child
	let closed = false

	const transport: Transport = {
		async start() {
			listen()
			const read = readAll()
			// Wait briefly for its last output. Not for the end of the output: a child process may keep it open forever.
			void process.ended.then(async (how) => {
				await Promise.race([read, pause(LAST_OUTPUT_MS)])
				fail(new Error(`its process ended (${how})`))
			})
		},
		async send(message) {
			if (closed || !stdin.writable) throw new Error('its process has ended')
			const line = `${JSON.stringify(message)}\n`
			if (stdin.writableLength > UNREAD_LIMIT_BYTES) {
				const error = new Error('it does not read its input')
				fail(error)
				throw error
			}
			stdin.write(line)
		},
		async close() {
			end()
			await process.stop()
		},
	}
	return transport

	function listen(): void {
		const throttle = openThrottle()
		stderr.setEncoding('utf8').on('data', (text: string) => {
			stderrTail.push(text)
			const wait = throttle(text.length)
			if (wait === 0) return
			stderr.pause()
			setTimeout(() => stderr.resume(), wait)
		})
	}

	/** Handles messages one after another. During a wait nothing is read, which slows the process down. */
	async function readAll(): Promise<void> {
		const throttle = openThrottle()
		let pieces: Buffer[] = []
		let size = 0
		try {
			for await (const chunk of stdout as AsyncIterable<Buffer>) {
				let from = 0
				for (let at = chunk.indexOf(NEWLINE); at !== -1; at = chunk.indexOf(NEWLINE, from)) {
					const line = Buffer.concat([...pieces, chunk.subarray(from, at)])
					pieces = []
					size = 0
					from = at + 1
					const wait = throttle(line.length, handleLine(line.toString('utf8')))
					if (wait > 0) await pause(wait)
					if (closed) return
				}
				if (from < chunk.length) pieces.push(chunk.subarray(from))
				size += chunk.length - from
				if (size > FRAME_LIMIT_BYTES) {
					fail(new Error(`it sent a message of more than ${FRAME_LIMIT_BYTES} bytes`))
					return
				}
			}
		} catch {
			// The stream was destroyed, or broke. The end of the process reports the reason.
		}
	}

	/** Handles the messages of a line, and returns their number, at least 1. */
	function handleLine(line: string): number {
		if (line.trim() === '') return 1
		let parsed: unknown
		try {
			// Some runtimes begin their output with a byte order mark.
			parsed = JSON.parse(line.replace(/^\ufeff/, ''))
		} catch {
			// Not cut: a part of a secret would not be redacted.
			const text = line.length > LINE_LIMIT ? `a line of ${line.length} characters` : line
			stderrTail.push(`[on standard output, where only messages belong] ${text}\n`)
			return 1
		}
		// Revision 2025-03-26 allows batches.
		const messages: unknown[] = Array.isArray(parsed) ? parsed : [parsed]
		if (messages.length > LIST_LIMIT) {
			fail(new Error(`it sent a list of more than ${LIST_LIMIT} messages`))
			return 1
		}
		for (const message of messages) {
			if (typeof message === 'object' && message !== null) transport.onmessage?.(message as JSONRPCMessage)
		}
		return messages.length
	}

	function fail(error: Error): void {
		if (closed) return
		transport.onerror?.(error)
		end()
		void process.stop()
	}

	function end(): void {
		if (closed) return
		closed = true
		transport.onclose?.()
	}
}
