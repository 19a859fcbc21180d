/** Derives workarounds from a server's refusal: what to leave out, or to send in another form, in the next request. */
import type { Attachment } from '../../core/protocol.ts'
import type { ModelOrder } from '../order.ts'
import { shownBlobs } from '../attachments/shown.ts'
import type { ModelFailure, ModelRequest } from './provider.ts'
import { mentionsTokenLimit } from './too-long.ts'
import type { Traits } from './traits.ts'

export interface Workaround {
	/** Added to those of the request. */
	traits: Traits
	/** The later calls to which it applies too: all of the same model, or only those with the same settings and tools. */
	holds?: 'for the model' | 'for such requests'
}

interface Asked {
	order: ModelOrder
	request: ModelRequest
	traits: Traits
	/** As `traits` before the first attempt of this call. */
	known: Traits
	/** Names of fields that can be omitted. */
	fields: readonly string[]
}

/** Statuses of a refusal. OpenRouter answers 404 if no server supports the request, and local servers answer 500. */
const STATUSES: ReadonlySet<number | undefined> = new Set([400, 404, 405, 415, 422, 500, 501])

const REFUSES =
	/unsupport|not (currently |yet )?(support|permit|allow|enabl|available|accept|valid|implement)|unknown|unrecogni[sz]ed|unexpected|extra|forbidden|invalid|deprecat|unavailable|does ?n[o']t|do not|cannot|can't|could not|only|must|should|unable|fail|too (large|high|big|many)|exceed|requires?|no endpoints|at most|missing/i

/**
 * Undefined if nothing dispensable is left. Attachments are dispensable whatever the refusal names: if they stayed, every later
 * request of the conversation would be refused, too.
 */
export function workaroundFor(failure: ModelFailure, asked: Asked): Workaround | undefined {
	if (isTooLarge(failure)) return tooLarge(asked)
	return namedBy(failure, asked) ?? (isRefusal(failure) ? withoutAttachments(asked) : undefined)
}

/** Undefined if the refusal names nothing dispensable, or only what was omitted already. */
function namedBy(failure: ModelFailure, asked: Asked): Workaround | undefined {
	const { code, status, message } = failure
	if (code === 'context_too_long' || !STATUSES.has(status) || !REFUSES.test(message)) return undefined
	const media = mediaRefused(failure, asked)
	if (media) return media
	const found = RULES.map((rule) => rule(failure, asked)).find((traits) => traits !== undefined)
	if (found) {
		const holds = isAboutThisRequest(failure, found) ? 'for such requests' : 'for the model'
		return isNew(found, asked.traits) ? { traits: found, holds } : undefined
	}
	if (status !== 500 && asked.traits.state !== false && isAboutState(failure, asked)) {
		return { traits: { state: false }, ...(asked.order.kind === 'openai' && { holds: 'for the model' }) }
	}
	return undefined
}

const MEDIA: readonly (readonly [type: Attachment['type'], trait: 'images' | 'files' | 'audio', named: RegExp])[] = [
	['image', 'images', /image|vision|multi-?modal|picture|mmproj/i],
	['file', 'files', /\bfiles?\b|document|pdf|input_file/i],
	['audio', 'audio', /audio|sound|modalit/i],
]

/** Refusals of one attachment, which do not apply to others. */
const UNREADABLE =
	/could not (process|decode|read)|(invalid|corrupt|malformed|empty) (image|file|document|pdf|audio|base64)|does not match|exceeds|too (large|big|small|long)|dimension|resolution|valid (image|base64)|one of the following formats|password/i
const TOO_MANY = /too many|at most ([1-9]\d*)/i

/** How many attachments are omitted singly, one after another, before all are. */
const SINGLE_LIMIT = 3
/** Limit of the attachments that are remembered as unreadable for one model. */
const UNREADABLE_LIMIT = 200

/** Refused attachments are described in words. Some servers only state that a message must be text. */
function mediaRefused(
	{ message, param = '' }: ModelFailure,
	{ request, traits, known }: Asked,
): Workaround | undefined {
	const { unreadable: before = [] } = known
	const blobsOf = (type: Attachment['type']): string[] =>
		shownBlobs(request, type).filter((blob) => !before.includes(blob))
	const sent = MEDIA.filter(([type, trait]) => traits[trait] !== false && blobsOf(type).length > 0)
	if (sent.length === 0) return undefined
	const description = `${param} ${message}`
	const named = sent.filter(([, , name]) => name.test(description))
	const isAboutText = /content/i.test(description) && /string|text|type|part|variant|array|list/i.test(message)
	const refused = named.length > 0 ? named : isAboutText ? sent : []
	if (refused.length === 0) return undefined
	const blobs = refused.flatMap(([type]) => blobsOf(type))
	const tried = (traits.unreadable ?? []).filter((blob) => !before.includes(blob))
	const isTooMany = TOO_MANY.test(message)
	if (!isTooMany && !UNREADABLE.test(message))
		return { traits: Object.fromEntries(refused.map(([, trait]) => [trait, false])), holds: 'for the model' }
	const next = isTooMany ? beyond(message, blobs, tried) : suspects(blobs, tried)
	if (!next) return undefined
	const unreadable = [...before, ...next].slice(-UNREADABLE_LIMIT)
	return { traits: { unreadable }, ...(!isTooMany && { holds: 'for the model' }) }
}

/** Too many bytes, not tokens: proxies limit bodies, often to 1 MiB. */
function isTooLarge({ status, message }: ModelFailure): boolean {
	return status === 413 && !mentionsTokenLimit(message)
}

/** Attachments make a body large: first only the newest is sent, then none. Not remembered: they may fit into another request. */
function tooLarge(asked: Asked): Workaround | undefined {
	const { request, traits, known } = asked
	const { unreadable: before = [] } = known
	const blobs = sentBlobs(request, traits, before)
	const tried = (traits.unreadable ?? []).length - before.length
	if (tried > 0 || blobs.length < 2) return withoutAttachments(asked)
	return { traits: { unreadable: [...before, ...blobs.slice(1)].slice(-UNREADABLE_LIMIT) } }
}

/** All attachments that may have been sent as such, except `omitted` ones. */
function sentBlobs(request: ModelRequest, traits: Traits, omitted: readonly string[]): string[] {
	return MEDIA.filter(([, trait]) => traits[trait] !== false)
		.flatMap(([type]) => shownBlobs(request, type))
		.filter((blob) => !omitted.includes(blob))
}

/** Probably a refusal of the request itself: that of a key or a model usually has another status. */
function isRefusal({ code, status }: ModelFailure): boolean {
	return code === 'model_rejected' && (status === 400 || status === 415 || status === 422)
}

/** Not remembered, since the attachments may not be the reason. */
function withoutAttachments({ request, traits }: Asked): Workaround | undefined {
	const { unreadable: before = [] } = traits
	const blobs = sentBlobs(request, traits, before)
	return blobs.length > 0 ? { traits: { unreadable: [...before, ...blobs].slice(-UNREADABLE_LIMIT) } } : undefined
}

/** The attachments to leave out next: one at a time, newest first, since older ones were probably accepted before; then all. */
function suspects(blobs: readonly string[], tried: readonly string[]): readonly string[] | undefined {
	const [last = ''] = tried
	const next = tried.length < 2 ? blobs.indexOf(last) + 1 : blobs.length
	if (next < Math.min(SINGLE_LIMIT, blobs.length)) return blobs.slice(next, next + 1)
	return tried.length < blobs.length ? blobs : undefined
}

/** All but the newest ones that the server allows. */
function beyond(message: string, blobs: readonly string[], tried: readonly string[]): readonly string[] | undefined {
	const most = tried.length > 0 ? 0 : Number(TOO_MANY.exec(message)?.[1] ?? 1)
	const rest = blobs.slice(most)
	return rest.length > tried.length ? rest : undefined
}

/**
 * A value out of range, one unreadable tool, or too many tools are not properties of the model: other agents may use other values
 * and tools, which must not be omitted.
 */
function isAboutThisRequest({ message, param = '' }: ModelFailure, { drop, tools, json, forced }: Traits): boolean {
	if (json === false || forced === false) return true
	if (drop) return OUT_OF_RANGE.test(message)
	const isAboutTheseTools = SINGLE_TOOL.test(`${param} ${message}`) || OUT_OF_RANGE.test(message)
	return tools === false && isAboutTheseTools
}

const SINGLE_TOOL = /\b(tools|function_declarations)[.[]\d|\bschema for function\b/i

const OUT_OF_RANGE =
	/\b(range|between|at (most|least)|(less|greater|lower|higher|larger|smaller|more|fewer) than|max(imum)?\b.{0,40}\b(is|of|allowed|value)|minimum|too (large|high|big|small|low|many|long)|exceeds?)\b|[<>≤≥]/i

type Rule = (failure: ModelFailure, asked: Asked) => Traits | undefined

/** The first matching rule applies. No rule changes something twice, or against the operator's settings. */
const RULES: readonly Rule[] = [
	whereNamed(
		/stream_options|include_usage/,
		{ stream_options: false },
		({ stream_options }) => stream_options === undefined,
	),
	whereNamed(/\bstream(ing|ed)?\b/i, { streaming: false }, ({ streaming }) => streaming === undefined),
	// The answer is checked anyway.
	whereNamed(
		/response_?format|text\.format|output_(config|format)|response_?(mime|json|schema)|mime type|json.?schema|json_object|structured|grammar|guided/i,
		{ json: false },
		({ json }, { request }) => json !== false && request.form?.json !== undefined,
	),
	whereNamed(
		/tool[_ ]?(choice|config)|function_?calling_?config|\brequired\b.*\btools?\b/i,
		{ forced: false },
		({ forced }, { request }) => forced !== false && request.form?.call !== undefined,
	),
	callIds,
	schemas,
	tools,
	alternation,
	systemRole,
	emptyContent,
	// Newer models of Anthropic refuse a budget, older ones require it.
	whereNamed(
		/adaptive[^]*thinking|thinking[^]*adaptive/i,
		{ adaptive_thinking: true },
		({ adaptive_thinking }, { order }) => order.kind === 'anthropic' && !adaptive_thinking,
	),
	maxTokens,
	anyField,
]

/** A rule for a refusal whose field or message matches `name`. */
function whereNamed(name: RegExp, learned: Traits, applies: (traits: Traits, asked: Asked) => boolean): Rule {
	return ({ message, param = '' }, asked) =>
		applies(asked.traits, asked) && name.test(`${param} ${message}`) ? learned : undefined
}

/** Ids of calls from another provider may be refused. */
function callIds({ message, param = '' }: ModelFailure, { order, traits }: Asked): Traits | undefined {
	if (traits.short_ids || !order.kind.startsWith('openai')) return undefined
	const isNamed = CALL_ID.test(`${param} ${message}`)
	return isNamed && /length|too long|pattern|alphanumeric/i.test(message) ? { short_ids: true } : undefined
}

const CALL_ID = /\btool[ _]?call[ _]?ids?\b|\btool_calls\[\d+\]\.id\b|\bcall_id\b|\btool_?use[._]?id\b/i

/** Some servers cannot read a schema; the grammars of local servers support few keywords. */
function schemas({ message, param = '' }: ModelFailure, { traits, request }: Asked): Traits | undefined {
	if (traits.simple_schemas || request.tools.length === 0) return undefined
	const isNamed = /json.?schema|schema|grammar|function_declarations/i.test(message)
	return isNamed || /^tools[.[]/.test(param) ? { simple_schemas: true } : undefined
}

function tools({ message, param = '' }: ModelFailure, { traits, request }: Asked): Traits | undefined {
	if (traits.tools !== undefined || request.tools.length === 0) return undefined
	const isNamed =
		/\btools?\b|\btool[_ -](use|calls?|calling|choice)\b|\bfunction[_ -]call(s|ing)?\b|\bschema for function\b/i.test(
			message,
		)
	const isPairing = /tool_use_id|tool_call_id|tool_result|must be followed|preceding/i.test(message)
	return (/^tools\b/.test(param) || isNamed) && !isPairing ? { tools: false } : undefined
}

/** Templates without a system role, or without roles for tools, have the same message. */
function alternation({ message }: ModelFailure, { request, traits }: Asked): Traits | undefined {
	if (!/\balternat/i.test(message)) return undefined
	if (!traits.alternate) return { alternate: true }
	if (request.system !== null && traits.system_role === undefined) return { system_role: 'user' }
	const hasResults = request.turns.some(({ role }) => role === 'tool')
	return hasResults && traits.tools === undefined ? { tools: false } : undefined
}

function systemRole({ message }: ModelFailure, { order, request, traits }: Asked): Traits | undefined {
	if (request.system === null || traits.system_role === 'user') return undefined
	if (!/\b(system|developer)\b/i.test(message) || !/role|instruction|message|prompt/i.test(message)) return undefined
	if (traits.system_role === 'developer' && order.compat?.developer_role === undefined) return { system_role: 'user' }
	return /use ['"`]?developer/i.test(message) ? { system_role: 'developer' } : { system_role: 'user' }
}

function emptyContent({ message, param = '' }: ModelFailure, { traits }: Asked): Traits | undefined {
	const isNamed = /\bcontent\b/.test(`${param} ${message}`) && /null|none|required|string|missing/i.test(message)
	return !traits.text_always && isNamed && !/reasoning/.test(message) ? { text_always: true } : undefined
}

function maxTokens({ message, param }: ModelFailure, { order, traits }: Asked): Traits | undefined {
	const description = `${param} ${message}`
	if (!/\bmax_(completion_|output_)?tokens\b/.test(description) || order.kind !== 'openai') return undefined
	const isUnknown = /unsupport|not support|unknown|unrecogni|unexpected|extra|not permitted|instead/i.test(message)
	if (!isUnknown || traits.max_tokens_field !== undefined) return without('max_tokens', traits)
	const isOld = /max_completion_tokens['"`]? instead/.test(message) || !/max_completion_tokens/.test(description)
	return { max_tokens_field: isOld ? 'max_completion_tokens' : 'max_tokens' }
}

function anyField({ message, param = '' }: ModelFailure, { fields, traits }: Asked): Traits | undefined {
	const sent = fields.filter((field) => !traits.drop?.includes(field))
	const [head = ''] = param.split(/[.[]/)
	const field =
		sent.find((name) => name === param) ??
		sent.find((name) => name === head) ??
		// Longest first: one name may be part of another.
		sent
			.toSorted((a, b) => b.length - a.length)
			.find((name) => new RegExp(`(^|[^\\w-])${RegExp.escape(name)}($|[^\\w-])`, 'i').test(message))
	return field === undefined ? undefined : without(field, traits)
}

function isAboutState({ message, param = '' }: ModelFailure, { request }: Asked): boolean {
	const hasState = request.turns.some((turn) => turn.role === 'assistant' && turn.provider_state)
	return hasState && /reasoning|thinking|thought|signature|encrypted|extra_content/i.test(`${param} ${message}`)
}

function without(field: string, { drop = [] }: Traits): Traits | undefined {
	return drop.includes(field) ? undefined : { drop: [field] }
}

function isNew(workaround: Traits, known: Traits): boolean {
	return Object.entries(workaround).some(([key, value]) => known[key as keyof Traits] !== value)
}
