/** Google's Gemini API. */
import { defined } from '../../core/util/defined.ts'
import { fieldsOf, isObject } from '../../core/util/is-object.ts'
import { wireName } from '../wire-name.ts'
import type { ToolCallRequest } from '../../core/protocol.ts'
import type { ModelOrder } from '../order.ts'
import { providerOf } from './dialect.ts'
import type { ServerError } from './failures.ts'
import { ContentReader } from './google-answer.ts'
import { argumentsIn, pairCalls } from './past-calls.ts'
import { shownOf, textIn } from '../attachments/shown.ts'
import type { Shown, AcceptedMedia } from '../attachments/shown.ts'
import type { ModelRequest, Provider, Turn } from './provider.ts'
import { stateOf } from './provider-state.ts'
import { simpleParameters } from './tool-parameters.ts'
import { supportedForm } from './traits.ts'
import type { Traits } from './traits.ts'
import { listIn } from './values.ts'

export const google: Provider = providerOf({
	kind: 'google',
	optional: [
		'temperature',
		'topP',
		'maxOutputTokens',
		'stopSequences',
		'seed',
		'presencePenalty',
		'frequencyPenalty',
		'thinkingConfig',
		'toolConfig',
	],
	expected: 'contents; is base_url right? It ends in /v1beta',
	requestOf(order, request, traits) {
		const { model, api_key } = order
		const method = traits.streaming === false ? 'generateContent' : 'streamGenerateContent?alt=sse'
		return {
			path: `/${/^(models|tunedModels)\//.test(model) ? model : `models/${model}`}:${method}`,
			headers: api_key ? { 'x-goog-api-key': api_key } : {},
			body: contentBody(order, request, traits),
		}
	},
	readerFor: (answer) => new ContentReader(answer),
	named,
})

/** The API's refusal of thinking does not name the field. */
function named(reported: ServerError): ServerError {
	const isAboutThinking = /thinking/i.test(reported.message) && !/signature/i.test(reported.message)
	return isAboutThinking ? { ...reported, param: 'thinkingConfig' } : reported
}

/** Models that think, and models whose thinking has levels instead of a budget. */
const THINKS = /gemini-(2\.5|[3-9])/
const HAS_LEVELS = /gemini-[3-9]/

const BUDGETS: Readonly<Record<string, number>> = { none: 0, minimal: 512, low: 1_024, medium: 8_192, high: 24_576 }

/** Replaces a missing signature; documented for conversations that another model began. */
const NO_SIGNATURE = 'skip_thought_signature_validator'

type Part = Record<string, unknown>
interface Content {
	role: 'user' | 'model'
	parts: Part[]
}

export function contentBody(order: ModelOrder, request: ModelRequest, traits: Traits): Record<string, unknown> {
	const { tools } = request
	const system = traits.system_role === 'user' ? null : request.system
	const params = { ...order.params, ...order.sampling } as Record<string, unknown>
	const { temperature, top_p, max_tokens, stop, seed, presence_penalty, frequency_penalty } = params
	const thinkingConfig = thinkingOf(order, params.reasoning_effort)
	const config: Record<string, unknown> = {
		systemInstruction: system,
		...(tools.length > 0 && {
			tools: [
				{
					functionDeclarations: tools.map(({ name, description, parameters }) => ({
						name: wireName(name),
						description,
						...(traits.simple_schemas ? plain(parameters) : { parametersJsonSchema: parameters }),
					})),
				},
			],
		}),
		...defined({ temperature, topP: top_p, maxOutputTokens: max_tokens, seed, thinkingConfig }),
		...defined({ presencePenalty: presence_penalty, frequencyPenalty: frequency_penalty }),
		...(stop !== undefined && { stopSequences: [stop].flat() }),
		...formOf(request, traits),
	}
	for (const field of traits.drop ?? []) delete config[field]
	const contents = contentsOf(order, request, traits)
	if (traits.system_role === 'user' && request.system !== null) contents[0]?.parts.unshift({ text: request.system })
	return merged(bodyOf(contents, config), order.extra_body)
}

/** Fields that belong to the request itself, not to `generationConfig`. */
const REQUEST_FIELDS = ['tools', 'toolConfig', 'safetySettings', 'cachedContent', 'labels', 'serviceTier']

function bodyOf(contents: unknown, { systemInstruction, ...config }: Record<string, unknown>): Record<string, unknown> {
	const settings = Object.entries(config).filter(([name]) => !REQUEST_FIELDS.includes(name))
	return {
		contents,
		...(typeof systemInstruction === 'string' && { systemInstruction: { parts: [{ text: systemInstruction }] } }),
		...Object.fromEntries(Object.entries(config).filter(([name]) => REQUEST_FIELDS.includes(name))),
		...(settings.length > 0 && { generationConfig: Object.fromEntries(settings) }),
	}
}

/** Merges objects; other values are replaced. */
function merged(body: Record<string, unknown>, extra: Record<string, unknown> = {}): Record<string, unknown> {
	const all = { ...body, ...extra }
	for (const [name, value] of Object.entries(extra)) {
		const own = body[name]
		if (isObject(own) && isObject(value)) all[name] = merged(own, value)
	}
	return all
}

function formOf({ form }: ModelRequest, traits: Traits): object {
	const { json, call } = supportedForm(form, traits)
	return {
		...(json && { responseMimeType: 'application/json', ...(json.schema && { responseJsonSchema: json.schema }) }),
		...(call && { toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: call } } }),
	}
}

/** This kind of schema does not allow empty objects. */
function plain(parameters: Record<string, unknown>): object {
	const schema = simpleParameters(parameters)
	return Object.keys(fieldsOf(schema.properties)).length > 0 ? { parameters: schema } : {}
}

function thinkingOf({ model }: ModelOrder, effort: unknown): object | undefined {
	if (!THINKS.test(model)) return undefined
	if (typeof effort !== 'string') return { includeThoughts: true }
	if (HAS_LEVELS.test(model)) {
		return { includeThoughts: true, thinkingLevel: { none: 'minimal', xhigh: 'high', max: 'high' }[effort] ?? effort }
	}
	return { includeThoughts: effort !== 'none', thinkingBudget: BUDGETS[effort] ?? BUDGETS.high }
}

function contentsOf(order: ModelOrder, request: ModelRequest, traits: Traits): Content[] {
	const contents: Content[] = []
	/** The provider's ids of calls that have one. */
	const ids = new Map<string, string>()
	for (const turn of request.turns) {
		const role = turn.role === 'assistant' ? 'model' : 'user'
		const parts = partsOf(order, request, turn, traits, ids)
		const last = contents.at(-1)
		if (parts.length === 0) continue
		if (last?.role === role) last.parts.push(...parts)
		else contents.push({ role, parts })
	}
	// The results of an answer's calls must be together; their attachments follow.
	const isResult = ({ functionResponse }: Part): boolean => functionResponse !== undefined
	return contents.map(({ role, parts }) => ({
		role,
		parts: [...parts.filter(isResult), ...parts.filter((part) => !isResult(part))],
	}))
}

const ACCEPTED: AcceptedMedia = {
	images: new Set(['image/png', 'image/jpeg', 'image/webp', 'image/heic']),
	files: new Set(['application/pdf']),
	audio: new Set(['audio/wav', 'audio/mpeg', 'audio/ogg', 'audio/flac', 'audio/aac', 'audio/mp4']),
}

function partOf(shown: Shown): Part {
	if (shown.kind === 'text') return { text: shown.text }
	return { inlineData: { mimeType: shown.media_type, data: shown.base64 } }
}

function partsOf(
	order: ModelOrder,
	request: ModelRequest,
	turn: Turn,
	traits: Traits,
	ids: Map<string, string>,
): Part[] {
	switch (turn.role) {
		case 'user':
			return shownOf(turn, request, traits, ACCEPTED).map(partOf)
		case 'tool': {
			const { call_id, name, ok } = turn
			const id = ids.get(call_id)
			const shown = shownOf(turn, request, traits, ACCEPTED)
			const response = ok ? { result: textIn(shown) } : { error: textIn(shown) }
			return [
				{ functionResponse: { ...(id !== undefined && { id }), name: wireName(name), response } },
				...shown.filter(({ kind }) => kind !== 'text').map(partOf),
			]
		}
		case 'assistant': {
			const { tool_calls } = turn
			const state = stateOf(order, turn, traits)
			const stateParts = listIn(state.parts).map(fieldsOf)
			const parts = stateParts.length > 0 ? replayed(stateParts, tool_calls, ids) : undefined
			if (parts) return parts
			const calls = tool_calls.map(({ name, arguments: args }, at) => {
				const functionCall = { name: wireName(name), args: argumentsIn(args) }
				const isFirst = at === 0 && HAS_LEVELS.test(order.model)
				return { functionCall, ...(isFirst && { thoughtSignature: NO_SIGNATURE }) }
			})
			return [...(turn.content === '' ? [] : [{ text: turn.content }]), ...calls]
		}
	}
}

/** The parts of the provider's state; undefined if one of the calls is not among them. */
function replayed(parts: Part[], calls: readonly ToolCallRequest[], ids: Map<string, string>): Part[] | undefined {
	const made = parts.filter((part) => isObject(part.functionCall))
	const pairs = pairCalls(
		made.map(({ functionCall }) => fieldsOf(functionCall)),
		calls,
	)
	if (!pairs) return undefined
	return parts.filter((part) => {
		if (!isObject(part.functionCall)) return true
		const call = pairs[made.indexOf(part)]
		const { id } = part.functionCall
		if (call && typeof id === 'string') ids.set(call.id, id)
		return call !== undefined
	})
}
