/**
 * Everything that a program can reach: `svc`, the second argument of its function.
 *
 *     svc.primitive(name, args)  the result of the primitive
 *     svc.fetch(url, init)       {status, ok, url, headers, text(), json()}; headers by lower-case name, or headers.get(name)
 *     svc.secret(name)           the value
 *     svc.log(...things)         writes a log line of the run; synchronous
 *
 * The first three return promises, which reject with an Error that has a `code` (such as `permission_denied`). Besides `svc`, a
 * program has the JavaScript language and the additions of globals.ts. Nothing else leads out of the isolate.
 *
 * THE TEXT of the function below is evaluated inside the isolate, before the program and in the same realm. So it refers
 * to nothing outside itself. The program may replace everything that it can reach (`JSON.stringify`, `Array.prototype.push`, a
 * getter on `Object.prototype`), so this function captures what it needs first, calls methods by captured functions only, and
 * keeps state in null-prototype objects. Only text and numbers cross the boundary.
 */
import type { HostCallKind, ProgramLimits } from './host-protocol.ts'

/** The messages from the isolate: a call, a timer to set or to clear, or the outcome. */
export type PostKind = HostCallKind | 'sleep' | 'wake' | 'done' | 'failed' | 'invalid'
/** `call` numbers calls and timers; 0 if there is none. `text` is JSON, a number for `sleep`, a message for `failed`. */
export type Post = (what: PostKind, call: number, text: string) => void

export type Bridge = ReturnType<typeof bridge>

interface PendingCall {
	call: number
	what: PostKind
	body: string
	resolve(answer: unknown): void
	reject(error: unknown): void
	read: (text: string) => unknown
	next: PendingCall | undefined
}

/** `finish`: as `post`, for the outcome. */
export function bridge(post: Post, finish: Post, limitsText: string) {
	const { parse, stringify } = JSON
	const { apply } = Reflect
	const { freeze, defineProperty } = Object
	const { slice, indexOf, toLowerCase } = String.prototype
	const { hasOwnProperty } = Object.prototype
	const OwnPromise = Promise
	const OwnError = Error
	const OwnTypeError = TypeError
	const toText = String
	const limits = parse(limitsText) as ProgramLimits

	let args: unknown
	let ended = false
	let calls = 0
	let length = 0
	let inFlight = 0
	let timers = 0
	let lines = 0
	const pendingCalls: Record<number, PendingCall> = { __proto__: null } as never
	const timerCallbacks: Record<number, () => void> = { __proto__: null } as never
	let first: PendingCall | undefined
	let last: PendingCall | undefined

	const cut = (text: string, at: number): string => (text.length > at ? apply(slice, text, [0, at]) : text)

	const fault = (code: string, message: string): Error => {
		const error = new OwnError(message)
		defineProperty(error, 'code', { __proto__: null, value: code, enumerable: true } as PropertyDescriptor)
		return error
	}

	/** Sends a request, or queues it until fewer are in progress. */
	const call = (what: PostKind, body: string, read: PendingCall['read']): Promise<unknown> =>
		new OwnPromise((resolve, reject) => {
			if (ended) throw fault('stopped', 'the program has already answered')
			if (calls >= limits.calls) throw fault('limit_calls', `at most ${limits.calls} calls`)
			if (body.length > limits.text_length) {
				throw fault('payload_too_large', `a call may take ${limits.text_length} characters, this has ${body.length}`)
			}
			if (length + body.length > limits.all_text_length) {
				throw fault('payload_too_large', `all calls together may take ${limits.all_text_length} characters`)
			}
			calls++
			length += body.length
			const waiting: PendingCall = { call: calls, what, body, resolve, reject, read, next: undefined }
			if (inFlight < limits.calls_in_flight) return send(waiting)
			if (last) last.next = waiting
			else first = waiting
			last = waiting
		})

	const send = (waiting: PendingCall): void => {
		// First, since it throws if the program has used up the stack; then nothing has changed.
		post(waiting.what, waiting.call, waiting.body)
		pendingCalls[waiting.call] = waiting
		inFlight++
		waiting.body = ''
	}

	const sendNext = (): void => {
		const waiting = first
		if (!waiting || inFlight >= limits.calls_in_flight) return
		first = waiting.next
		if (!first) last = undefined
		send(waiting)
	}

	/** JSON of plain data. Callers use null prototypes, so that a `toJSON` of the program does not apply to our fields. */
	const pack = (fields: Record<string, unknown>): string => stringify(fields)
	const named = (name: unknown, of: string): string => {
		if (typeof name !== 'string') throw new OwnTypeError(`${of} takes a name`)
		return name
	}

	const responseOf = (text: string): unknown => {
		const answer = parse(text) as { status: number; url: string; headers?: Record<string, string>; body?: string }
		const body = answer.body ?? ''
		const headers = answer.headers ?? {}
		const get = (name: unknown): string | null => {
			const key = apply(toLowerCase, toText(name), []) as string
			return apply(hasOwnProperty, headers, [key]) ? (headers[key] ?? null) : null
		}
		defineProperty(headers, 'get', { __proto__: null, value: get } as PropertyDescriptor)
		return {
			status: answer.status,
			ok: answer.status >= 200 && answer.status < 300,
			url: answer.url,
			headers,
			text: async () => body,
			json: async () => parse(body) as unknown,
		}
	}

	const requestOf = (given: unknown): Record<string, unknown> | undefined => {
		if (given === undefined || given === null) return undefined
		const { method, headers, body } = given as Record<string, unknown>
		const text = body === undefined || body === null || typeof body === 'string' ? (body ?? undefined) : toText(body)
		return { __proto__: null, method, headers, body: text }
	}

	const svc = freeze({
		primitive: freeze(async (name: unknown, given: unknown = {}) =>
			call('primitive', pack({ __proto__: null, name: named(name, 'svc.primitive'), args: given }), parse),
		),
		fetch: freeze(async (url: unknown, init?: unknown) =>
			call('fetch', pack({ __proto__: null, url: toText(url), init: requestOf(init) }), responseOf),
		),
		secret: freeze(async (name: unknown) =>
			call('secret', pack({ __proto__: null, name: named(name, 'svc.secret') }), parse),
		),
		log: freeze((...things: unknown[]) => log(things)),
	})

	const log = (things: unknown[]): void => {
		if (ended || lines >= limits.log_lines) return
		let text = ''
		for (let i = 0; i < things.length && text.length <= limits.log_line_length; i++) {
			text += (i > 0 ? ' ' : '') + shown(things[i])
		}
		// Checked again: the conversion to text runs getters of the program, which may log too.
		if (ended || lines >= limits.log_lines) return
		lines++
		if (lines === limits.log_lines) text = 'no more lines are accepted'
		post('log', 0, pack({ __proto__: null, text: cut(text, limits.log_line_length) }))
	}

	const shown = (thing: unknown): string => {
		try {
			if (typeof thing === 'string') return thing
			if (thing instanceof OwnError) return describe(thing)
			const text: unknown = typeof thing === 'object' ? stringify(thing) : undefined
			return typeof text === 'string' ? text : toText(thing)
		} catch {
			return '[something without text]'
		}
	}

	/** The message of an error, and the line of the program in which it was thrown. Runs getters of the program. */
	const describe = (error: unknown): string => {
		let text: unknown
		let line = ''
		try {
			if (typeof error === 'object' && error !== null) {
				const { name, message, stack } = error as Record<string, unknown>
				text = message
				if (typeof text === 'string' && text !== '' && typeof name === 'string' && name !== 'Error') {
					text = `${cut(name, 100)}: ${text}`
				}
				line = lineOf(stack)
			} else {
				text = toText(error)
			}
		} catch {}
		if (typeof text !== 'string' || text === '') text = 'it threw something without a message'
		return cut(text as string, limits.message_length - line.length) + line
	}

	const lineOf = (stack: unknown): string => {
		if (typeof stack !== 'string') return ''
		const file = 'skill.js:'
		const at = apply(indexOf, stack, [file]) as number
		if (at < 0) return ''
		let end = at + file.length
		let digits = ''
		for (; stack[end] !== undefined && stack[end]! >= '0' && stack[end]! <= '9' && digits.length < 7; end++) {
			digits += stack[end]
		}
		return digits === '' ? '' : ` (line ${digits})`
	}

	const end = (what: 'done' | 'failed' | 'invalid', text: string): void => {
		if (ended) return
		ended = true
		finish(what, 0, text)
	}

	return {
		/** Sets the program's arguments, as JSON, before it starts. */
		arm(text: string): void {
			args = parse(text)
		},
		/** Calls the default export of the program, once its module has been evaluated. */
		async start(run: unknown): Promise<void> {
			if (typeof run !== 'function') return end('invalid', 'the default export is not a function')
			try {
				const value: unknown = await run(args, svc)
				const text: unknown = stringify(value)
				// Undefined, a function and a symbol have no JSON.
				if (typeof text !== 'string') end('done', 'null')
				else if (text.length <= limits.text_length) end('done', text)
				else
					end('failed', `its result has ${text.length} characters of JSON; at most ${limits.text_length} are allowed`)
			} catch (error) {
				end('failed', describe(error))
			}
		},
		/** Delivers the answer to a call (JSON; `{code, message}` if it failed), or fires a timer. */
		deliver(number: number, ok: boolean, text: string): void {
			const run = timerCallbacks[number]
			if (run) {
				delete timerCallbacks[number]
				timers--
				try {
					run()
				} catch (error) {
					log(['uncaught in a timer:', describe(error)])
				}
				return
			}
			const waiting = pendingCalls[number]
			if (!waiting) return
			delete pendingCalls[number]
			inFlight--
			sendNext()
			try {
				if (ok) return waiting.resolve(waiting.read(text))
				const { code, message } = parse(text) as { code: string; message: string }
				waiting.reject(fault(code, message))
			} catch (error) {
				waiting.reject(error)
			}
		},
		log,
		/** Delay in milliseconds. Throws `limit_calls` if too many timers are set, or after too many calls and timers. */
		setTimer(run: () => void, delay: number): number {
			if (ended) return 0
			if (calls >= limits.calls) throw fault('limit_calls', `at most ${limits.calls} calls and timers`)
			if (timers >= limits.calls_in_flight)
				throw fault('limit_calls', `at most ${limits.calls_in_flight} timers at a time`)
			const timer = calls + 1
			post('sleep', timer, toText(delay))
			timerCallbacks[timer] = run
			calls++
			timers++
			return timer
		},
		clearTimer(timer: number): void {
			if (!timerCallbacks[timer]) return
			delete timerCallbacks[timer]
			timers--
			post('wake', timer, '')
		},
	}
}
