/** The tools of the current generation: which plugin offers them, how they are described to a model, how one is called. */
import { createHash } from 'node:crypto'
import Joi from 'joi'
import { Fault, messageOf, toWire } from '../errors.ts'
import { unguarded } from '../events/families.ts'
import type { Logger } from '../log/log.ts'
import type { JournalStep, NewEvent, ToolCallRequest, ToolSpec } from '../protocol.ts'
import { wireName } from '../protocol.ts'
import type { RunLog } from '../events/run-log.ts'
import type { RecordChange } from '../store/ports.ts'
import { showResult } from './results.ts'
import type { ResultPlace, ShownResult } from './results.ts'
import { Pause } from './tool.ts'
import type { AgentRef, QuestionText, ToolCall, ToolDefinition, Wait } from './tool.ts'

export interface Toolbox {
	/** All tools that this agent may use now, primitives first. */
	list(agent: AgentRef): Promise<ToolDefinition[]>
}

/** Where a call happens. */
export interface CallSite {
	run_id: string
	agent: AgentRef
	conversation: string
	signal: AbortSignal
	log: RunLog
	/** `ToolCall.ask`. */
	ask(question: QuestionText): Promise<string>
	/** Settles once no question is open: questions that the tool did not wait for are withdrawn before its result is reported. */
	asked?(): Promise<void>
	/** A result as the agent's model may see it: without secrets, except those that a grant, or the tool, reveals to it. */
	forModel(text: string, revealed: ReadonlySet<string>): Promise<string>
	/** Characters of a result that the model sees; see core/runs/results.ts. */
	result_characters: number
	/** The call had begun before the gateway died, and its outcome is unknown. */
	interrupted: boolean
}

export type CallResult = { status: 'done'; ok: boolean; content: string } | { status: 'waits'; wait: Wait }

/** Characters of arguments or results that an event carries. */
const EVENT_LIMIT = 16 * 1024
const DESCRIPTION_LIMIT = 4096
/** Characters of arguments up to which all mistakes are reported; reporting a hundred thousand would take a second. */
const ALL_MISTAKES_LIMIT = 16 * 1024

const primitiveEvents = { called: 'primitive.called', result: 'primitive.result', failed: 'primitive.failed' }

export function specOf(tool: ToolDefinition): ToolSpec {
	return {
		name: tool.name,
		description: tool.description.slice(0, DESCRIPTION_LIMIT),
		parameters: jsonSchemaOf(tool.parameters),
		...(tool.aliases && { aliases: tool.aliases }),
	}
}

/** Whether its calls may run at the same time as others. */
export function isConcurrent({ concurrent, repeatable }: ToolDefinition): boolean {
	return concurrent ?? repeatable === true
}

/** By canonical name, or by the name that a model with a narrower alphabet sees. */
export function findTool(tools: readonly ToolDefinition[], name: string): ToolDefinition | undefined {
	return (
		tools.find((tool) => tool.name === name) ??
		tools.find((tool) => wireName(tool.name) === name) ??
		tools.find((tool) => tool.aliases?.includes(name))
	)
}

/**
 * Makes one call and journals it: the event of its beginning, then, as one durable whole, the event of its end and the
 * step. A call that fails is a result for the model too; it throws only if the log cannot be written.
 */
export async function callTool(
	tools: readonly ToolDefinition[],
	request: ToolCallRequest,
	site: CallSite,
	logger: Logger,
): Promise<CallResult> {
	const tool = findTool(tools, request.name)
	if (!tool) {
		const names = tools.map((one) => one.name).join(', ')
		const fault = new Fault('tool_unknown', `there is no tool "${request.name}"; there are: ${names || 'none'}`)
		return finish(request, site, failure({ name: request.name }, request, site, fault))
	}
	if (site.interrupted) {
		const fault = new Fault(
			'tool_interrupted',
			`the call of ${tool.name} was interrupted and its outcome is unknown; check before you call it again`,
		)
		return finish(request, site, failure(tool, request, site, fault))
	}

	const events = tool.events ?? primitiveEvents
	const about = aboutCall(tool, request)
	const repeatable = tool.repeatable ?? events === primitiveEvents
	const begun: JournalStep | undefined = repeatable ? undefined : { kind: 'begun', call_id: request.id }
	const recorded = site.log.append(
		[{ event_type: events.called, payload: { ...about, arguments: shown(request.arguments, site) } }],
		begun,
	)
	if (repeatable) recorded.catch(() => {}) // the append of the result fails too, and that one is awaited
	else await recorded

	const revealed = new Set<string>()
	try {
		const args = parseArguments(tool, request.arguments)
		const value = await runTool(tool, args, callOf(request, site, revealed), site)
		if (value instanceof Pause) return { status: 'waits', wait: value.wait }
		return await finish(request, site, success(tool, request, site, value), revealed)
	} catch (error) {
		if (site.log.closed) throw error
		if (!(error instanceof Fault)) {
			const { run_id, agent } = site
			logger.warn({ err: error, tool: tool.name, run_id, agent: agent.name }, 'a tool failed')
		}
		return finish(request, site, failure(tool, request, site, error))
	}
}

/**
 * Calls a primitive, by its canonical name, in the middle of another tool's call, with the events of its own. Its arguments
 * are checked as always; returns plain data. Throws what it threw, as a Fault: `tool_unknown` if `tools` has no such
 * primitive, `permission_denied` for one that waits, since the outer call cannot be suspended.
 */
export async function callNested(
	tools: readonly ToolDefinition[],
	name: string,
	args: unknown,
	call: ToolCall,
): Promise<unknown> {
	const site = callSites.get(call)
	if (!site) throw new TypeError('callNested takes the very call that the outer tool was given')
	const tool = tools.find((one) => one.name === name && !one.events)
	if (!tool) throw new Fault('tool_unknown', `there is no primitive "${name}"`)
	const text = JSON.stringify(args) ?? '{}'
	const key = nestedKey(call, name, text)
	const request = { id: key.slice(call.run_id.length + 1), name, arguments: text }
	const payload = { ...aboutCall(tool, request), arguments: shown(text, site) }
	// These events are the gateway's own, whichever plugin makes the outer call.
	const emit = unguarded(call.emit)
	emit({ event_type: primitiveEvents.called, payload })
	const refuse = (): never => {
		throw new Fault('permission_denied', `${name} would wait, which it cannot within another tool's call`)
	}
	try {
		const nested: ToolCall = { ...call, emit, key, pause: refuse, ask: async () => refuse(), waitFor: refuse }
		const value = await tool.run(parseArguments(tool, text), nested)
		if (value instanceof Pause) refuse()
		const { event, content } = success(tool, request, site, value)
		emit(event)
		return typeof value === 'string' ? value : (JSON.parse(content) as unknown)
	} catch (error) {
		emit(failure(tool, request, site, error).event)
		throw error instanceof Fault ? error : new Fault('tool_failed', messageOf(error), { cause: error })
	}
}

/** The same call with another `emit`, for `callNested` too. */
export function withEmit(call: ToolCall, emit: ToolCall['emit']): ToolCall {
	const copy = { ...call, emit }
	const site = callSites.get(call)
	if (site) callSites.set(copy, site)
	return copy
}

/** How often each nested call was made in one outer call. The caller limits their number. */
const nestedCalls = new WeakMap<ToolCall, Map<string, number>>()

/** The same for the same calls when the outer call is repeated, in any order. */
function nestedKey(call: ToolCall, name: string, args: string): string {
	const counts = nestedCalls.get(call) ?? new Map<string, number>()
	nestedCalls.set(call, counts)
	const hash = createHash('sha256').update(`${name} ${args}`).digest('hex').slice(0, 16)
	const count = (counts.get(hash) ?? 0) + 1
	counts.set(hash, count)
	return `${call.key}.${hash}.${count}`
}

async function runTool(
	tool: ToolDefinition,
	args: Record<string, unknown>,
	call: ToolCall,
	site: CallSite,
): Promise<unknown> {
	try {
		return await tool.run(args, call)
	} finally {
		await site.asked?.()
	}
}

/** The event and step that give a waiting call its result: plain data, or a Fault if the call fails; to be appended with `change`. */
export function answeredCall(
	tools: readonly ToolDefinition[],
	request: ToolCallRequest,
	result: unknown,
	site: Pick<CallSite, 'log' | 'agent' | 'run_id' | 'result_characters'>,
): { event: NewEvent; step: ToolStep; change?: RecordChange } {
	const tool: Named = findTool(tools, request.name) ?? { name: request.name }
	const told = result instanceof Fault ? failure : success
	const { event, ok, content } = told(tool, request, site, result)
	const shown = showResult(site.log, placeOf(request, site), content, site.result_characters)
	const { step, change } = stepOf(request, ok, shown)
	return { event, step, ...(change && { change }) }
}

type ToolStep = Extract<JournalStep, { kind: 'tool' }>

function placeOf(request: ToolCallRequest, { agent, run_id }: Pick<CallSite, 'agent' | 'run_id'>): ResultPlace {
	return { uid: agent.uid, run_id, call_id: request.id }
}

function stepOf(
	request: ToolCallRequest,
	ok: boolean,
	{ content, size, change }: ShownResult,
): { step: ToolStep; change: RecordChange | undefined } {
	return { step: { kind: 'tool', call_id: request.id, ok, content, ...(size !== undefined && { size }) }, change }
}

interface Finished {
	event: NewEvent
	ok: boolean
	/** Complete, as the tool returned it. */
	content: string
}

async function finish(
	request: ToolCallRequest,
	site: CallSite,
	{ event, ok, content }: Finished,
	revealed: ReadonlySet<string> = new Set(),
): Promise<CallResult> {
	const shown = showResult(site.log, placeOf(request, site), content, site.result_characters)
	const { step, change } = stepOf(request, ok, shown)
	await site.log.append([event], step, change)
	return { status: 'done', ok, content: shown.like(await site.forModel(content, revealed)) }
}

type Logged = Pick<CallSite, 'log'>

function shown(text: string, { log }: Logged): string {
	// Redacted before it is cut, since the cut could leave a part of a secret. A whole text is redacted when it is appended.
	if (text.length <= EVENT_LIMIT) return text
	const { text: beginning, dropped } = log.redactor.cut(text, EVENT_LIMIT, 'event')
	return dropped === 0 ? beginning : `${beginning}… [cut: ${dropped} more characters]`
}

type Named = Pick<ToolDefinition, 'name' | 'events'>

function success(tool: Named, request: ToolCallRequest, site: Logged, value: unknown): Finished {
	const content = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null')
	const event = {
		event_type: (tool.events ?? primitiveEvents).result,
		payload: { ...aboutCall(tool, request), result: shown(content, site) },
	}
	return { event, ok: true, content }
}

function failure(tool: Named, request: ToolCallRequest, site: Logged, error: unknown): Finished {
	const { code, message } = error instanceof Fault ? toWire(error) : { code: 'tool_failed', message: messageOf(error) }
	const told = shown(message, site)
	const event = {
		event_type: (tool.events ?? primitiveEvents).failed,
		payload: { ...aboutCall(tool, request), code, message: told },
	}
	return { event, ok: false, content: JSON.stringify({ error: { code, message: told } }) }
}

function aboutCall(tool: Named, request: ToolCallRequest): Record<string, unknown> {
	const name = tool.events ? (tool.events.payload ?? { tool: tool.name }) : { primitive: tool.name }
	return { ...name, call_id: request.id }
}

/** Where a tool's call happens, for the calls that it makes in turn. */
const callSites = new WeakMap<ToolCall, CallSite>()

function callOf(request: ToolCallRequest, site: CallSite, revealed: Set<string>): ToolCall {
	const call: ToolCall = {
		run_id: site.run_id,
		agent: site.agent,
		conversation: site.conversation,
		key: `${site.run_id}:${request.id}`,
		signal: site.signal,
		emit: (event) => void site.log.append([event]).catch(() => {}), // the append of the result fails too
		pause: (question) => new Pause(question),
		ask: site.ask,
		waitFor: (run_id) => new Pause({ run_id }),
		reveal: (secret_id) => void revealed.add(secret_id),
	}
	callSites.set(call, site)
	return call
}

function parseArguments(tool: ToolDefinition, text: string): Record<string, unknown> {
	let value: unknown
	try {
		value = text.trim() === '' ? {} : JSON.parse(text)
	} catch (error) {
		throw new Fault(
			'invalid_arguments',
			`the arguments of ${tool.name} are not JSON (${messageOf(error)}); send one JSON object. You wrote: ${text}`,
		)
	}
	if (typeof value !== 'object' || value === null || Array.isArray(value)) {
		throw new Fault('invalid_arguments', `the arguments of ${tool.name} must be one JSON object. You wrote: ${text}`)
	}
	if (!Joi.isSchema(tool.parameters)) return value as Record<string, unknown>
	const checked = tool.parameters.validate(value, { abortEarly: text.length > ALL_MISTAKES_LIMIT, convert: false })
	if (checked.error)
		throw new Fault('invalid_arguments', `the arguments of ${tool.name} are wrong: ${checked.error.message}`)
	return checked.value as Record<string, unknown>
}

const schemas = new WeakMap<object, Record<string, unknown>>()

/** Made once for each schema: the conversion costs more than the rest of a run's order. */
function jsonSchemaOf(parameters: ToolDefinition['parameters']): Record<string, unknown> {
	if (!parameters) return { type: 'object', properties: {}, additionalProperties: false }
	if (!Joi.isSchema(parameters)) return parameters as Record<string, unknown>
	let schema = schemas.get(parameters)
	if (!schema) {
		const { $schema: _, ...rest } = parameters['~standard'].jsonSchema.input({ target: 'draft-2020-12' })
		schemas.set(parameters, (schema = { ...rest, additionalProperties: false }))
	}
	return schema
}
