/**
 * The checks of `svc doctor` for model servers. Most of them use the server's list of models. The list is also requested without
 * the key: a public list does not test the key.
 */
import { NotChecked, error, note, ok, warning } from '../../core/cli/doctor/contract.ts'
import type { Check, DoctorFile, Finding, CheckContext, Reply } from '../../core/cli/doctor/contract.ts'
import { isFault, messageOf } from '../../core/errors.ts'
import { someOf } from '../../core/util/some-of.ts'
import type { Provider } from './contract.ts'
import { dialectOf, isKey } from './dialects.ts'
import { placeChecks } from './place-checks.ts'

/** Limit of model names that are shown. */
const SHOWN = 10
const FAR_OFF_MS = 120_000

interface ProbedProvider {
	name: string
	provider: Provider & { base_url: string }
	/** `error` for the default provider; `warning` for others, which are used only if an agent names them, or as a fallback. */
	report: typeof error
	/**
	 * `kept`: it is in the vault, which does not return it while a gateway runs, and that gateway could not test it;
	 * `gone`: the vault has no such secret; `malformed`: it cannot be a key.
	 */
	key: 'none' | 'sent' | 'kept' | 'gone' | 'malformed'
	/** The result of the running gateway, which tested a key of the vault. */
	tried?: Tried
	/** Absent if the server did not answer; `problem` states why. */
	reply?: Reply
	/** The provider has a key, but the server lists its models without it too. */
	isOpen?: boolean
	problem?: string
	/** When it answered. */
	at: number
}

/** A part of the answer to `POST /v1/providers/check`. */
interface Tried {
	state: 'ok' | 'denied'
	models: string[]
}

export default {
	place: placeChecks,
	variables: { OPENAI_API_KEY: 'secret' },
	secretsIn: ({ providers }) =>
		Object.fromEntries(
			Object.entries(providers).flatMap(([name, provider]) =>
				typeof provider.api_key === 'string' ? [[`providers.${name}`, provider.api_key]] : [],
			),
		),
	checks: [
		ofEach('provider.reachable', 'whether the model servers answer', ({ name, provider, reply, problem, report }) => {
			const { base_url } = provider
			if (!reply)
				return report(
					`provider ${name} at ${base_url} does not answer: ${problem}`,
					`check that the server runs and that providers.${name}.base_url is correct: curl ${base_url}/models`,
				)
			if (reply.status >= 500)
				return warning(
					`provider ${name} at ${base_url} answers with an error (${reply.status})`,
					'check that server, or wait',
				)
			return ok(`provider ${name} answers`)
		}),
		ofEach(
			'provider.key',
			'whether the model servers accept their keys',
			({ name, provider, reply, key, tried, isOpen, report }) => {
				const setting = `providers.${name}.api_key`
				if (key === 'gone')
					return report(
						`the vault has no secret with the name in ${setting}`,
						'store it: svc vault set NAME; or change the name in gateway.yaml',
					)
				if (key === 'malformed')
					return report(
						`the secret in ${setting} cannot be a key: a key is printable ASCII without spaces or line breaks`,
						'give that secret another value: svc vault set NAME',
					)
				if (key === 'kept')
					return ok(`the vault has the key of provider ${name}; it was not tested, since only the gateway can read it`)
				if (isOpen)
					return ok(`provider ${name} lists its models without a key, so this does not test its key; a run does`)
				if (tried?.state === 'ok') return ok(`provider ${name} accepts its key`)
				if (!tried && reply?.status !== 401 && reply?.status !== 403)
					return reply
						? ok(key === 'none' ? `provider ${name} requires no key` : `provider ${name} accepts its key`)
						: []
				const what = key === 'none' ? 'requires a key, but none is set' : 'refuses its key'
				return report(
					`provider ${name} ${what}${reply && reply.status >= 400 ? ` (${reply.status})` : ''}`,
					typeof provider.api_key === 'object'
						? `give the secret another value: svc vault set ${provider.api_key.secret}`
						: `set ${setting} in gateway.yaml to a key that is valid there, best as a reference such as \${OPENAI_API_KEY}`,
				)
			},
		),
		ofEach('provider.model', 'whether the model servers have the models', ({ name, provider, reply, tried }) => {
			const has = tried && tried.models.length > 0 ? tried.models : modelsIn(provider, reply)
			if (!has) return reply?.status === 404 ? ok(`provider ${name} has no list of its models`) : []
			const missing = (['model', 'embedding_model'] as const).filter((setting) => {
				const wanted = provider[setting]
				return wanted !== undefined && !has.some((model) => isSame(model, wanted))
			})
			if (missing.length === 0) return ok(`provider ${name} has ${provider.model}`)
			const shown = has.map((model) => model.slice(0, 80))
			return missing.map((setting) =>
				warning(
					`provider ${name} does not list the model ${provider[setting]}; it has ${someOf(shown, SHOWN)}`,
					`set providers.${name}.${setting} in gateway.yaml to one that it has, or load that model there`,
				),
			)
		}),
		ofEach('clock', 'the clock of this machine', ({ name, reply, at }) => {
			if (reply?.date === null || reply?.date === undefined) return []
			const off = at - reply.date
			if (Math.abs(off) < FAR_OFF_MS) return ok(`the clock of this machine agrees with that of ${name}`)
			return note(
				`the clock of this machine is ${Math.round(Math.abs(off) / 1000)} s ${off > 0 ? 'ahead of' : 'behind'} that of ${name}: tokens, schedules and signatures depend on it`,
				'synchronize it with NTP: sudo timedatectl set-ntp true',
			)
		}),
	],
} satisfies DoctorFile

function ofEach(id: string, about: string, check: (asked: ProbedProvider) => Finding | Finding[]): Check {
	return { id, about, run: async (context) => (await askAll(context)).flatMap(check) }
}

function askAll(context: CheckContext): Promise<ProbedProvider[]> {
	return context.once('providers', async () => {
		const { providers, default_provider } = await context.config()
		const servers = Object.entries(providers as Record<string, Provider>).filter(
			(entry): entry is [string, ProbedProvider['provider']] => entry[1].base_url !== undefined,
		)
		return Promise.all(
			servers.map(([name, provider]) => ask(context, name, provider, name === default_provider ? error : warning)),
		)
	})
}

async function ask(
	context: CheckContext,
	name: string,
	provider: ProbedProvider['provider'],
	report: typeof error,
): Promise<ProbedProvider> {
	const { key, value } = await keyOf(context, provider)
	const about = { name, provider, report, key }
	try {
		const url = new URL(provider.base_url + dialectOf(provider.kind).list)
		for (const [parameter, text] of Object.entries(provider.query ?? {})) url.searchParams.set(parameter, text)
		const reply = await context.ask(url.href, { headers: headersOf(provider, value) })
		const at = Date.now()
		if (key === 'sent' && reply.status === 200) {
			const bare = await context.ask(url.href, { headers: headersOf(provider, undefined) }).catch(() => undefined)
			return { ...about, reply, at, isOpen: bare?.status === 200 }
		}
		const tried = key === 'kept' ? await triedByGateway(context, provider) : undefined
		return tried
			? { ...about, reply, at, key: 'sent', tried, isOpen: tried.state === 'ok' && reply.status === 200 }
			: { ...about, reply, at }
	} catch (thrown) {
		if (!isFault(thrown)) throw thrown
		return { ...about, problem: messageOf(thrown), at: Date.now() }
	}
}

/** Undefined if the gateway cannot test the key. */
async function triedByGateway(context: CheckContext, provider: ProbedProvider['provider']): Promise<Tried | undefined> {
	const { kind, base_url, api_key, headers, query } = provider
	// The gateway's check supports only an address and a key.
	if (headers !== undefined || query !== undefined) return undefined
	try {
		const gateway = await context.gateway()
		const answer = await gateway?.post<Tried | { state: 'unreachable' | 'refused' }>('/v1/providers/check', {
			kind,
			base_url,
			api_key,
		})
		return answer?.state === 'ok' || answer?.state === 'denied' ? answer : undefined
	} catch (error) {
		if (error instanceof NotChecked || isFault(error)) return undefined
		throw error
	}
}

/** Without headers whose values are in the vault. */
function headersOf({ kind, headers = {} }: Provider, key: string | undefined): Record<string, string> {
	const set = Object.entries(headers).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
	return { ...dialectOf(kind).headers(key), ...Object.fromEntries(set) }
}

async function keyOf(
	context: CheckContext,
	{ api_key }: Provider,
): Promise<{ key: ProbedProvider['key']; value?: string }> {
	if (api_key === undefined) return { key: 'none' }
	if (typeof api_key === 'string') return { key: 'sent', value: api_key }
	const secret = await (await context.secrets()).find(api_key.secret)
	if (!secret) return { key: 'gone' }
	if (secret.value === null) return { key: 'kept' }
	return isKey(secret.value) ? { key: 'sent', value: secret.value } : { key: 'malformed' }
}

/** Undefined if the response does not contain it. */
function modelsIn({ kind }: Provider, reply: Reply | undefined): string[] | undefined {
	if (reply?.status !== 200) return undefined
	const names = dialectOf(kind)
		.names(reply.body)
		.filter((name) => typeof name === 'string')
	return names.length > 0 ? names : undefined
}

/** Compares names of models. Ollama adds a tag, `llama3:latest`; Google sometimes adds a prefix, `models/gemini-2.5-flash`. */
function isSame(...models: [listed: string, wanted: string]): boolean {
	const [listed, wanted] = models.map((name) => name.replace(/^models\//, ''))
	return listed === wanted || listed === `${wanted}:latest`
}
