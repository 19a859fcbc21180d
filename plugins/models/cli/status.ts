/** The default provider, and whether the last model call failed, for `svc status`. */
import type { StatusPart } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { permitted } from '../../../core/cli/or-null.ts'
import { when } from '../../../core/cli/when.ts'
import { modelFailure } from '../../shared/model-failure.ts'
import type { ModelFailure, ModelOutcome } from '../../shared/model-failure.ts'

interface ListedProvider {
	name: string
	kind: string
	base_url: string | null
	model: string | null
	is_default: boolean
}

interface Facts {
	providers: ListedProvider[] | null
	/** As `modelFailure` returns it; also null if the token does not permit events:read. */
	model_failure: ModelFailure | null
}

export default {
	async read({ api }: Cli): Promise<Facts> {
		const providers = await permitted(api.request<ListedProvider[]>('GET', '/v1/providers'))
		const read = (where: string) => permitted(api.request<{ events: ModelOutcome[] }>('GET', where))
		return { providers, model_failure: await modelFailure(read, providers?.find((one) => one.is_default)?.name) }
	},
	show({ providers, model_failure }: Facts, style) {
		const byDefault = providers?.find((one) => one.is_default)
		if (!byDefault) return []
		const line = `models: ${style.plain(titleOf(byDefault))}`
		if (!model_failure) return [line]
		const { at, provider, message } = model_failure
		const whose = provider === null || provider === byDefault.name ? '' : ` to ${provider}`
		return [style.warn(style.plain(`${line}; the last call${whose} failed at ${when(at)}: ${message}`))]
	},
} satisfies StatusPart

function titleOf({ name, kind, base_url, model }: ListedProvider): string {
	if (kind === 'offline') return 'the built-in offline provider answers; "svc init" sets up a real one'
	return `${name} (${model ?? 'each agent names its model'}${base_url === null ? '' : ` at ${base_url}`})`
}
