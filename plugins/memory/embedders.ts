/** The embedder of an agent's memories: an embedding server, the local sentence encoder, or the built-in hashing. */
import { Fault, messageOf } from '../../core/errors.ts'
import type { AgentRef, Context } from '../../core/plugin.ts'
import type { EndpointOrder } from '../models/contract.ts'
import type {} from '../agents/contract.ts'
import type { LongTermMemory, MemorySettings } from './contract.ts'
import { HASHING, normalise } from './hashing.ts'
import { encoderIn } from './local/encoder.ts'
import { encoderFolder, isInstalled, LOCAL } from './local/packages.ts'
import type { IndexThread } from './search/thread.ts'

export interface Embedder {
	/** Vectors of two embedders with different ids cannot be compared. */
	id: string
	/** Vectors of length 1, one for each text. Throws `embedding_failed`. Absent: the built-in one, of the index thread. */
	embed?(texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>
}

export type EmbedderOf = (agent: AgentRef) => Promise<Embedder>

const builtIn: Embedder = { id: HASHING }

/** Selects by `memory.embedder`. Falls back to the built-in embedder if the configured one is missing or misconfigured. */
export function embeddersOf(ctx: Context<MemorySettings>): EmbedderOf {
	const { embedder } = ctx.config
	if (embedder === 'hashing') return async () => builtIn
	if (embedder === 'local') return localOf(ctx)
	return async (agent) => {
		try {
			const record = await ctx.use('agents').find(agent.name)
			const order = record && (await ctx.find('models')?.embedder(record.config))
			if (!order) return builtIn
			return { id: `${order.base_url} ${order.model}`, embed: (texts, signal) => embedByServer(order, texts, signal) }
		} catch (error) {
			ctx.log.warn({ agent: agent.name }, `the built-in embedder is used: ${messageOf(error)}`)
			return builtIn
		}
	}
}

/** Texts of one request to the index thread. Searches wait while it hashes them. */
const HASH_BATCH = 8

export function embedBy(
	{ signal }: Pick<Context, 'signal'>,
	embedderOf: EmbedderOf,
	thread: Pick<IndexThread, 'ask'>,
): LongTermMemory['embed'] {
	return async (agent, texts, caller) => {
		const { id, embed } = await embedderOf(agent)
		const both = AbortSignal.any([signal, caller])
		const vectors: Float32Array[] = []
		while (vectors.length < texts.length) {
			both.throwIfAborted()
			const next = texts.slice(vectors.length, vectors.length + (embed ? BATCH : HASH_BATCH))
			vectors.push(...(embed ? await embed(next, both) : await thread.ask('hash', { texts: next })))
		}
		return { embedder: id, vectors }
	}
}

/** Texts of one request to an embedding server. */
export const BATCH = 64
/** Characters sent of each text: one text beyond the model's limit fails the whole request. */
const TEXT_CHARACTERS = 8_000
/** A text that is too long for the model is halved, down to this. */
const MIN_CHARACTERS = 500
const MAX_DIMENSIONS = 8_192
const MAX_TIMEOUT_MS = 60_000

/** While the encoder is missing, checks again on each call: it may have been installed meanwhile. */
function localOf(ctx: Context<MemorySettings>): EmbedderOf {
	const { home } = ctx.gateway
	const open = (): Embedder | undefined => {
		if (!isInstalled(home)) return undefined
		const encoder = ctx.own(encoderIn(encoderFolder(home)), 'sentence encoder')
		ctx.trouble(null)
		return { id: LOCAL, embed: encoder.embed }
	}
	let local = open()
	if (!local) {
		const missing = 'memory.embedder is local, but the sentence encoder is not installed; run: svc memory encoder'
		ctx.log.warn({}, missing)
		ctx.trouble(`${missing}. Until then memories are found by their wording only.`)
	}
	return async () => (local ??= open()) ?? builtIn
}

async function embedByServer(
	order: EndpointOrder,
	texts: readonly string[],
	signal: AbortSignal,
): Promise<Float32Array[]> {
	const { base_url, api_key, headers = {}, query = {}, model, timeout_ms } = order
	const timeout = Math.min(timeout_ms, MAX_TIMEOUT_MS)
	const { OpenAI } = await import('openai') // heavy, and not needed without such a provider
	// The client requires a key; servers that need none ignore it.
	const client = new OpenAI({
		baseURL: base_url,
		apiKey: api_key ?? 'none',
		defaultHeaders: headers,
		defaultQuery: query,
		timeout,
		maxRetries: 0,
	})
	const embed = async (characters: number): Promise<Float32Array[]> => {
		const input = texts.map((text) => text.slice(0, characters).toWellFormed())
		try {
			const { data } = await client.embeddings.create({ model, input, encoding_format: 'float' }, { signal })
			return vectorsOf(data, texts.length)
		} catch (error) {
			const shorter = Math.floor(Math.max(...input.map(({ length }) => length)) / 2)
			if (shorter >= MIN_CHARACTERS && isTooLong(error)) return embed(shorter)
			throw error
		}
	}
	try {
		return await embed(TEXT_CHARACTERS)
	} catch (error) {
		throw new Fault('embedding_failed', `provider ${order.provider} returned no embeddings: ${messageOf(error)}`, {
			cause: error,
		})
	}
}

/** Many embedding models accept only 512 tokens, and servers report a longer text with various statuses and messages. */
function isTooLong(error: unknown): boolean {
	const { status = 0 } = error as { status?: number }
	return [400, 413, 422, 500].includes(status) && /token|context|too (large|long)|length/i.test(messageOf(error))
}

function vectorsOf(data: unknown, count: number): Float32Array[] {
	if (!Array.isArray(data) || data.length !== count) throw new Error(`the response does not have ${count} vectors`)
	const vectors: Float32Array[] = Array.from({ length: count }, () => new Float32Array())
	for (const [at, item] of (data as { index?: number; embedding?: unknown }[]).entries()) {
		const { index = at, embedding } = item ?? {}
		if (!Array.isArray(embedding) || !embedding.every(isFloat32)) {
			throw new Error('the response contains an invalid vector')
		}
		vectors[index] = normalise(Float32Array.from(embedding as number[]))
	}
	const dimensions = vectors[0]?.length ?? 0
	const isWhole = vectors.length === count && vectors.every((vector) => vector.length === dimensions)
	if (!isWhole || dimensions === 0 || dimensions > MAX_DIMENSIONS)
		throw new Error(`the vectors must all have the same size, of at most ${MAX_DIMENSIONS} dimensions`)
	return vectors
}

/** A larger number would become infinite. */
function isFloat32(value: unknown): boolean {
	return typeof value === 'number' && Number.isFinite(Math.fround(value))
}
