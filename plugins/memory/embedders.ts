/** Which embedder makes the vectors of an agent: an embedding server, the local sentence encoder, or the built-in hashing. */
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

/** By `memory.embedder`. The built-in one where what is set is missing or not set up correctly. */
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

/** Texts that the index thread hashes in one go: searches wait behind them. */
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

/** Texts per request, and characters sent of each text: more than models accept would fail the whole request. */
export const BATCH = 64
const TEXT_CHARACTERS = 8_000
/** A text that is too long for the model is halved, down to this. */
const LEAST_CHARACTERS = 500
const MOST_DIMENSIONS = 8_192
const MOST_TIMEOUT_MS = 60_000

/** Looks again each time while the encoder is missing: it may be installed meanwhile. */
function localOf(ctx: Context<MemorySettings>): EmbedderOf {
	const { home } = ctx.gateway
	let local: Embedder | undefined
	const open = (): Embedder | undefined => {
		if (!isInstalled(home)) return undefined
		const encoder = ctx.own(encoderIn(encoderFolder(home)), 'sentence encoder')
		ctx.trouble(null)
		return { id: LOCAL, embed: encoder.embed }
	}
	local = open()
	if (!local) {
		const missing = 'memory.embedder is local, but the sentence encoder is not installed; run: svc memory encoder'
		ctx.log.warn({}, missing)
		ctx.trouble(`${missing}. Until then memories are found by their wording.`)
	}
	return async () => (local ??= open()) ?? builtIn
}

async function embedByServer(
	order: EndpointOrder,
	texts: readonly string[],
	signal: AbortSignal,
): Promise<Float32Array[]> {
	const { base_url, api_key, headers = {}, query = {}, model, timeout_ms } = order
	const timeout = Math.min(timeout_ms, MOST_TIMEOUT_MS)
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
			if (shorter >= LEAST_CHARACTERS && isTooLong(error)) return embed(shorter)
			throw error
		}
	}
	try {
		return await embed(TEXT_CHARACTERS)
	} catch (error) {
		throw new Fault('embedding_failed', `provider ${order.provider} made no embeddings: ${messageOf(error)}`, {
			cause: error,
		})
	}
}

/** Many embedding models take 512 tokens. Servers say so in many ways. */
function isTooLong(error: unknown): boolean {
	const { status = 0 } = error as { status?: number }
	return [400, 413, 422, 500].includes(status) && /token|context|too (large|long)|length/i.test(messageOf(error))
}

function vectorsOf(data: unknown, count: number): Float32Array[] {
	if (!Array.isArray(data) || data.length !== count) throw new Error(`it did not answer with ${count} vectors`)
	const vectors: Float32Array[] = Array.from({ length: count }, () => new Float32Array())
	for (const [at, item] of (data as { index?: number; embedding?: unknown }[]).entries()) {
		const { index = at, embedding } = item ?? {}
		if (!Array.isArray(embedding) || !embedding.every(isFloat32)) {
			throw new Error('it answered with something that is not a vector')
		}
		vectors[index] = normalise(Float32Array.from(embedding as number[]))
	}
	const dimensions = vectors[0]?.length ?? 0
	const isWhole = vectors.length === count && vectors.every((vector) => vector.length === dimensions)
	if (!isWhole || dimensions === 0 || dimensions > MOST_DIMENSIONS) throw new Error('its vectors do not fit together')
	return vectors
}

/** A larger number would become infinite. */
function isFloat32(value: unknown): boolean {
	return typeof value === 'number' && Number.isFinite(Math.fround(value))
}
