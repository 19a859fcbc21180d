/** The default provider, and whether the last model call failed, for `svc status`. */
import type { StatusPart } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { permitted } from '../../../core/cli/or-null.ts'
import { when } from '../../../core/cli/when.ts'

interface ListedProvider {
	name: string
	kind: string
	base_url: string | null
	model: string | null
	is_default: boolean
}

interface ModelFailure {
	at: string
	/** Null if the failure does not name it. */
	provider: string | null
	message: string
}

interface Facts {
	providers: ListedProvider[] | null
	/**
	 * The failure of the last call, or of the last call to the default provider: then fallbacks have answered. Null as well if the
	 * token does not permit events:read.
	 */
	model_failure: ModelFailure | null
}

/** Events that report the end of a model call. */
const OUTCOMES = 'model.response,model.retry,model.fallback,run.failed'
/** The latest outcomes that are examined. A call that fails and its fallback together have a few. */
const OUTCOMES_LIMIT = 20

interface Outcome {
	event_type: string
	timestamp: string
	payload: { provider?: string; from?: string; message?: string; error?: string; code?: string }
}

export default {
	async read({ api }: Cli): Promise<Facts> {
		const [providers, log] = await Promise.all([
			permitted(api.request<ListedProvider[]>('GET', '/v1/providers')),
			permitted(api.request<{ events: Outcome[] }>('GET', `/v1/audit?event_type=${OUTCOMES}&limit=${OUTCOMES_LIMIT}`)),
		])
		const byDefault = providers?.find((one) => one.is_default)
		const outcomes = log?.events ?? []
		const ofDefault =
			byDefault && outcomes.find(({ payload: { provider, from } }) => (provider ?? from) === byDefault.name)
		return { providers, model_failure: failureIn(outcomes[0]) ?? failureIn(ofDefault) }
	},
	show({ providers, model_failure }: Facts, style) {
		const byDefault = providers?.find((one) => one.is_default)
		if (!byDefault) return []
		const line = `models: ${style.plain(titleOf(byDefault))}`
		if (!model_failure) return [line]
		const { at, provider, message } = model_failure
		const whose = provider === null || provider === byDefault.name ? '' : ` of ${provider}`
		return [style.warn(style.plain(`${line}; the last call${whose} failed at ${when(at)}: ${message}`))]
	},
} satisfies StatusPart

function titleOf({ name, kind, base_url, model }: ListedProvider): string {
	if (kind === 'offline') return 'the built-in offline provider answers; "svc init" sets up a real one'
	return `${name} (${model ?? 'each agent names its model'}${base_url === null ? '' : ` at ${base_url}`})`
}

/** Null for a call that was answered, and for a run that failed for another reason. */
function failureIn(latest: Outcome | undefined): ModelFailure | null {
	if (!latest || latest.event_type === 'model.response') return null
	const { timestamp: at, payload } = latest
	const { provider = payload.from ?? null, message = payload.error ?? '', code = '' } = payload
	return latest.event_type === 'run.failed' && !code.startsWith('model_') ? null : { at, provider, message }
}
