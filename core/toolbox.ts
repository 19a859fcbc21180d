/** The tools of the current generation: who offers them, how a model is told of them, how one is called. */
import Joi from 'joi'
import { Fault, messageOf, toWire } from './errors.ts'
import type { Logger } from './log.ts'
import { Pause } from './plugin.ts'
import type { AgentRef, QuestionText, ToolCall, ToolDefinition } from './plugin.ts'
import type { NewEvent, ToolCallRequest, ToolSpec } from './protocol.ts'
import { wireName } from './protocol.ts'
import type { JournalStep, RunLog } from './run-log.ts'

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
	/** The call had begun before the gateway died, and its outcome is unknown. */
	interrupted: boolean
}

export type CallResult = { status: 'done'; ok: boolean; content: string } | { status: 'waits'; question: QuestionText }

/** Characters of a result that a model gets to see; what is longer is cut, and says so. */
const RESULT_LIMIT = 64 * 1024
/** Characters of arguments or results that an event carries. */
const EVENT_LIMIT = 16 * 1024
const DESCRIPTION_LIMIT = 4096

const primitiveEvents = { called: 'primitive.called', result: 'primitive.result', failed: 'primitive.failed' }

export function specOf(tool: ToolDefinition): ToolSpec {
	return {
		name: tool.name,
		description: tool.description.slice(0, DESCRIPTION_LIMIT),
		parameters: jsonSchemaOf(tool.parameters),
		...(tool.aliases && { aliases: tool.aliases }),
	}
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
 * step. A call that fails is a result for the model too; only a log that cannot be written throws.
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
		const fault = new Fault('tool_unknown', `there is no tool "${request.name}"; there are: ${names}`)
		return finish(request, site, failure({ name: request.name }, request, fault))
	}
	if (site.interrupted) {
		const fault = new Fault(
			'tool_interrupted',
			`the call of ${tool.name} was interrupted and its outcome is unknown; check before you call it again`,
		)
		return finish(request, site, failure(tool, request, fault))
	}

	const events = tool.events ?? primitiveEvents
	const about = aboutCall(tool, request)
	const repeatable = tool.repeatable ?? events === primitiveEvents
	const begun: JournalStep | undefined = repeatable ? undefined : { kind: 'begun', call_id: request.id }
	const recorded = site.log.append(
		[{ event_type: events.called, payload: { ...about, arguments: cut(request.arguments, EVENT_LIMIT) } }],
		begun,
	)
	if (repeatable) recorded.catch(() => {}) // the append of the result fails too, and that one is awaited
	else await recorded

	try {
		const args = parseArguments(tool, request.arguments)
		const value = await tool.run(args, callOf(request, site))
		if (value instanceof Pause) return { status: 'waits', question: value.text }
		const content = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'null')
		const event = { event_type: events.result, payload: { ...about, result: cut(content, EVENT_LIMIT) } }
		return await finish(request, site, { event, ok: true, content: cut(content, RESULT_LIMIT) })
	} catch (error) {
		if (site.log.closed) throw error
		if (!(error instanceof Fault)) logger.warn({ err: error, tool: tool.name, run_id: site.run_id }, 'a tool failed')
		return finish(request, site, failure(tool, request, error))
	}
}

/** The event and step that give a waiting call its answer. */
export function answeredCall(
	tools: readonly ToolDefinition[],
	request: ToolCallRequest,
	answer: string,
): { event: NewEvent; step: JournalStep } {
	const tool: Named = findTool(tools, request.name) ?? { name: request.name }
	const events = tool.events ?? primitiveEvents
	const content = JSON.stringify({ answer })
	return {
		event: { event_type: events.result, payload: { ...aboutCall(tool, request), result: cut(content, EVENT_LIMIT) } },
		step: { kind: 'tool', call_id: request.id, ok: true, content },
	}
}

interface Finished {
	event: NewEvent
	ok: boolean
	content: string
}

async function finish(request: ToolCallRequest, site: CallSite, { event, ok, content }: Finished): Promise<CallResult> {
	await site.log.append([event], { kind: 'tool', call_id: request.id, ok, content })
	return { status: 'done', ok, content }
}

type Named = Pick<ToolDefinition, 'name' | 'events'>

function failure(tool: Named, request: ToolCallRequest, error: unknown): Finished {
	const { code, message } = error instanceof Fault ? toWire(error) : { code: 'tool_failed', message: messageOf(error) }
	const event = {
		event_type: (tool.events ?? primitiveEvents).failed,
		payload: { ...aboutCall(tool, request), code, message: cut(message, EVENT_LIMIT) },
	}
	return { event, ok: false, content: JSON.stringify({ error: { code, message: cut(message, RESULT_LIMIT) } }) }
}

function aboutCall(tool: Named, request: ToolCallRequest): Record<string, unknown> {
	const name = tool.events ? (tool.events.payload ?? { tool: tool.name }) : { primitive: tool.name }
	return { ...name, call_id: request.id }
}

function callOf(request: ToolCallRequest, site: CallSite): ToolCall {
	return {
		run_id: site.run_id,
		agent: site.agent,
		conversation: site.conversation,
		key: `${site.run_id}:${request.id}`,
		signal: site.signal,
		emit: (event) => void site.log.append([event]).catch(() => {}), // the append of the result fails too
		pause: (question) => new Pause(question),
	}
}

function parseArguments(tool: ToolDefinition, text: string): Record<string, unknown> {
	let value: unknown
	try {
		value = text.trim() === '' ? {} : JSON.parse(text)
	} catch (error) {
		throw new Fault(
			'invalid_arguments',
			`the arguments of ${tool.name} are not JSON (${messageOf(error)}); send one JSON object`,
		)
	}
	if (typeof value !== 'object' || value === null || Array.isArray(value)) {
		throw new Fault('invalid_arguments', `the arguments of ${tool.name} must be one JSON object`)
	}
	if (!Joi.isSchema(tool.parameters)) return value as Record<string, unknown>
	const checked = tool.parameters.validate(value, { abortEarly: false, convert: false })
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

function cut(text: string, limit: number): string {
	return text.length <= limit ? text : `${text.slice(0, limit)}… [cut: ${text.length - limit} more characters]`
}
