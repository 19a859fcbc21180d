/** The check of `svc doctor`: whether an embedding server still returns vectors of the stored size. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { error, ok, warning } from '../../core/cli/doctor/contract.ts'
import type { DoctorFile, Finding, CheckContext } from '../../core/cli/doctor/contract.ts'
import { isFault, messageOf } from '../../core/errors.ts'
import type { AgentRecord } from '../agents/contract.ts'
import type { Provider, SecretText } from '../models/contract.ts'
import { keys } from './records.ts'
import type { VectorRecord } from './records.ts'
import { manifestIn } from './search/files.ts'

/** Limit of agents whose vectors are checked. */
const AGENTS = 1_000
const FLOAT16_BYTES = 2

export default {
	packages: { usearch: 'searches memories' },
	checks: [
		{
			id: 'memory.dimensions',
			about: 'whether new embeddings have the size of the stored ones',
			async run(context) {
				const { providers } = await context.config()
				const findings = Object.entries(providers as Record<string, Provider>).map(async ([name, provider]) => {
					if (provider.embedding_model === undefined) return []
					const stored = await storedVectorsOf(context, `${provider.base_url} ${provider.embedding_model}`)
					return compare(context, name, provider, stored)
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
	stored: StoredVectors[],
): Promise<Finding[]> {
	const headers = await headersOf(context, provider)
	// While a gateway runs, only that gateway can read the vault.
	if (!headers) return []
	const { base_url, embedding_model } = provider
	const current = await dimensionsOf(context, provider, headers)
	if (typeof current === 'string')
		return [
			warning(
				`provider ${name} returns no embeddings from ${embedding_model}: ${current}; memories are found by their words only`,
				`check that the provider has this model (curl ${base_url}/models) and that base_url ends with the version of its API, such as /v1; or remove providers.${name}.embedding_model from gateway.yaml`,
			),
		]
	const mismatched = stored.filter(({ dimensions }) => dimensions !== current)
	if (mismatched.length === 0)
		return [ok(`${embedding_model} returns embeddings of ${current} dimensions, the size of the stored ones`)]
	const whose = mismatched.map(({ agent, dimensions }) => `${agent} (${dimensions})`).slice(0, 5)
	return [
		error(
			`${embedding_model} of provider ${name} returns ${current} dimensions, but embeddings of another size are stored for ${whose.join(', ')}: those memories are not found by meaning`,
			`restore the earlier model, or load the new one under another name and set providers.${name}.embedding_model to that, which recreates all embeddings`,
		),
	]
}

/** Characters of a server's error message that are quoted. */
const SHOWN_CHARACTERS = 200

/** Returns the reason as text if the server returns no vector. */
async function dimensionsOf(
	context: CheckContext,
	provider: Provider,
	headers: Record<string, string>,
): Promise<number | string> {
	try {
		const url = new URL(`${provider.base_url}/embeddings`)
		for (const [parameter, value] of Object.entries(provider.query ?? {})) url.searchParams.set(parameter, value)
		const { status, body } = await context.ask(url.href, {
			method: 'POST',
			headers,
			body: { model: provider.embedding_model, input: ['dimensions'], encoding_format: 'float' },
		})
		const { data } = (body ?? {}) as { data?: { embedding?: unknown }[] }
		const vector = Array.isArray(data) ? data[0]?.embedding : undefined
		if (Array.isArray(vector) && vector.length > 0) return vector.length
		const message = (body as { error?: { message?: unknown } } | null | undefined)?.error?.message
		const quote = typeof message === 'string' ? `: ${message.slice(0, SHOWN_CHARACTERS)}` : ''
		return `it answers with ${status} and no vector${quote}`
	} catch (thrown) {
		if (!isFault(thrown)) throw thrown
		return messageOf(thrown)
	}
}

/** The provider's headers with its API key. Undefined if a secret is not available. */
async function headersOf(
	context: CheckContext,
	{ api_key, headers = {} }: Provider,
): Promise<Record<string, string> | undefined> {
	const open = async (text: SecretText): Promise<string | null> =>
		typeof text === 'string' ? text : ((await (await context.secrets()).find(text.secret))?.value ?? null)
	const key = api_key === undefined ? undefined : await open(api_key)
	const sent = Object.entries(headers).map(async ([name, text]) => [name, await open(text)] as const)
	const all = {
		...(key !== undefined && { authorization: key && `Bearer ${key}` }),
		...Object.fromEntries(await Promise.all(sent)),
	}
	return Object.values(all).includes(null) ? undefined : (all as Record<string, string>)
}

/** From the manifests of stored graphs, and without a running gateway from one vector of each agent in the store. */
async function storedVectorsOf(context: CheckContext, embedder: string): Promise<StoredVectors[]> {
	const folder = join(context.home, 'data', 'index')
	const files = (await readdir(folder).catch(() => [])).filter((name) => name.endsWith('.json'))
	const stored = new Map<string, StoredVectors>()
	for (const file of files.slice(0, AGENTS)) {
		const uid = file.slice(0, -'.json'.length)
		try {
			const manifest = manifestIn(join(folder, file))
			if (manifest.embedder === embedder) stored.set(uid, { agent: uid, dimensions: manifest.dimensions })
		} catch {
			// The gateway rebuilds the index.
		}
	}
	if (await context.gateway()) return [...stored.values()]
	const store = await context.store()
	if (!store) return []
	for await (const { value } of store.list<AgentRecord>(['agents'], { limit: AGENTS })) {
		const { name: agent, uid } = value
		for await (const vector of store.list<VectorRecord>(keys.vectors(uid), { limit: 1 })) {
			const dimensions = vector.value.bytes.length / FLOAT16_BYTES
			if (vector.value.embedder === embedder) stored.set(uid, { agent, dimensions })
		}
	}
	return [...stored.values()]
}
