import { defineSettings } from '../../config/declaration.ts'
import { allSettings, count, section } from '../../config/fields.ts'
import type { UsageSettings } from './contract.ts'

export default defineSettings<UsageSettings>({
	description: 'Usage of model calls: tokens and cost.',
	topic: 'Agents at work',
	schema: (joi) =>
		allSettings<UsageSettings>({
			retention_days: count(1, 3650, 400, 'Days that usage is kept.'),
			limits: section('Daily limits (UTC) for all agents together. `config.limits` of an agent limits that agent.', {
				tokens_per_day: joi
					.number()
					.integer()
					.min(1)
					.allow(null)
					.default(null)
					.description(
						'Tokens of all model calls per day, requests and answers together. null: no limit. Default null.',
					),
				cost_per_day: joi
					.number()
					.positive()
					.max(1e9)
					.allow(null)
					.default(null)
					.description(
						'Cost of all model calls per day, in the currency of providers.NAME.prices. null: no limit. Default null.',
					),
			}),
		}),
})
