/** The check of `svc doctor`: whether an embedding server still makes vectors of the stored size. */
import { readFile, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { error, ok, warning } from '../../core/cli/doctor/contract.ts'
import type { DoctorFile, Finding, CheckContext } from '../../core/cli/doctor/contract.ts'
import { isFault, messageOf } from '../../core/errors.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { Provider } from '../models/contract.ts'
import { keys } from './records.ts'
import type { VectorRecord } from './records.ts'
import type { IndexManifest } from './search/files.ts'

/** Limit of agents whose vectors are checked. */
const AGENTS = 1_000
const FLOAT16_BYTES = 2

export default {
	packages: { usearch: 'searches memories' },
	checks: [
		{
			id: 'memory.dimensions',
			about: 'whether new embeddings fit the stored ones',
			async run(context) {
				const { providers } = await context.config()
				const findings = Object.entries(providers as Record<string, Provider>).map(async ([name, provider]) => {
					if (provider.embedding_model === undefined) return []
					const kept = await keptBy(context, `${provider.base_url} ${provider.embedding_model}`)
					return compare(context, name, provider, kept)
				})
				return (await Promise.all(findings)).flat()
			},
		},
	],
} satisfies DoctorFile

interface StoredVectors {
	/** The owner of the vectors: the agent's name or uid. */
	agent: string
	dimensions: number
}

async function compare(
	context: CheckContext,
	name: string,
	provider: Provider,
	kept: StoredVectors[],
): Promise<Finding[]> {
	const key = await keyOf(context, provider)
	// While a gateway runs, only the gateway can read the key.
	if (key === null) return []
	const { base_url, embedding_model } = provider
	const made = await dimensionsOf(context, provider, key)
	if (typeof made === 'string')
		return [
			warning(
				`provider ${name} makes no embeddings with ${embedding_model}: ${made}; memories are found by their words only`,
				`check whether it has that model: curl ${base_url}/models; or remove providers.${name}.embedding_model from gateway.yaml`,
			),
		]
	const others = kept.filter(({ dimensions }) => dimensions !== made)
	if (others.length === 0)
		return [ok(`${embedding_model} makes embeddings of ${made} dimensions, the size of the stored ones`)]
	const whose = others.map(({ agent, dimensions }) => `${agent} (${dimensions})`).slice(0, 5)
	return [
		error(
			`${embedding_model} of provider ${name} returns ${made} dimensions, but embeddings of another size are stored for ${whose.join(', ')}: those memories are not found by meaning`,
			`restore the earlier model, or load the new one under another name and set providers.${name}.embedding_model to that, which recreates all embeddings`,
		),
	]
}

/** Or why there are none. */
async function dimensionsOf(
	context: CheckContext,
	provider: Provider,
	key: string | undefined,
): Promise<number | string> {
	try {
		const { status, body } = await context.ask(`${provider.base_url}/embeddings`, {
			method: 'POST',
			headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
			body: { model: provider.embedding_model, input: ['dimensions'], encoding_format: 'float' },
		})
		const { data } = (body ?? {}) as { data?: { embedding?: unknown }[] }
		const vector = Array.isArray(data) ? data[0]?.embedding : undefined
		return Array.isArray(vector) && vector.length > 0 ? vector.length : `it answers with ${status} and no vector`
	} catch (thrown) {
		if (!isFault(thrown)) throw thrown
		return messageOf(thrown)
	}
}

/** Null if it is not available. */
async function keyOf(context: CheckContext, { api_key }: Provider): Promise<string | null | undefined> {
	if (typeof api_key !== 'object') return api_key
	return (await (await context.secrets()).find(api_key.secret))?.value ?? null
}

/** From the manifests of stored graphs, and without a running gateway from one vector of each agent in the store. */
async function keptBy(context: CheckContext, embedder: string): Promise<StoredVectors[]> {
	const folder = join(context.home, 'data', 'index')
	const files = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.json'))
	const kept = new Map<string, StoredVectors>()
	for (const file of files.slice(0, AGENTS)) {
		const manifest = await manifestIn(join(folder, file))
		const uid = file.slice(0, -'.json'.length)
		if (manifest?.embedder === embedder) kept.set(uid, { agent: uid, dimensions: manifest.dimensions })
	}
	if (await context.gateway()) return [...kept.values()]
	const store = await context.store()
	if (!store) return []
	for await (const { value } of store.list<AgentRecord>(['agents'], { limit: AGENTS })) {
		const { name: agent, uid } = value
		for await (const vector of store.list<VectorRecord>(keys.vectors(uid), { limit: 1 })) {
			const dimensions = vector.value.bytes.length / FLOAT16_BYTES
			if (vector.value.embedder === embedder) kept.set(uid, { agent, dimensions })
		}
	}
	return [...kept.values()]
}

/** A checksum, a line end, and a manifest. The gateway rebuilds unreadable files. */
async function manifestIn(file: string): Promise<Pick<IndexManifest, 'embedder' | 'dimensions'> | undefined> {
	try {
		const text = await readFile(file, 'utf8')
		return JSON.parse(text.slice(text.indexOf('\n') + 1)) as IndexManifest
	} catch {
		return undefined
	}
}
