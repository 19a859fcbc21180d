/** Checks of `svc config validate` beyond the schema: missing secrets, and providers that agents name but that do not exist. */
import type { PlaceCheck, PlaceProblem } from '../../core/cli/doctor/contract.ts'
import type {} from './contract.ts'

/** Agents that are checked: each needs a separate request. */
const AGENTS = 200

interface AgentView {
	config: { provider?: string; fallback?: string[] }
}

export const placeChecks: readonly PlaceCheck[] = [
	{
		about: 'secrets',
		async run({ providers }, context) {
			const problems: PlaceProblem[] = []
			for (const [name, { api_key, headers = {} }] of Object.entries(providers)) {
				const texts = {
					api_key,
					...Object.fromEntries(Object.entries(headers).map(([of, text]) => [`headers.${of}`, text])),
				}
				for (const [setting, text] of Object.entries(texts)) {
					if (typeof text !== 'object' || (await (await context.secrets()).find(text.secret))) continue
					const message = `the vault has no secret of this name; store it (svc vault set ${text.secret}) or correct the name`
					problems.push({ path: `providers.${name}.${setting}.secret`, message })
				}
			}
			return problems
		},
	},
	{
		about: 'the providers of agents',
		async run({ providers }, context) {
			const gateway = await context.gateway()
			if (!gateway) return []
			const problems: PlaceProblem[] = []
			for (const { name } of (await gateway.get<{ name: string }[]>('/v1/agents')).slice(0, AGENTS)) {
				const { config } = await gateway.get<AgentView>(`/v1/agents/${name}`)
				const named = [config.provider, ...(config.fallback ?? [])].filter((one) => one !== undefined)
				for (const missing of new Set(named.filter((one) => !Object.hasOwn(providers, one)))) {
					const message = `agent ${name} names the provider ${missing}, which does not exist; add it, or change the agent`
					problems.push({ path: 'providers', message, part: 'key' })
				}
			}
			return problems
		},
	},
]
