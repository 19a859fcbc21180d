import type { SettingsDeclaration } from 'svc-gateway'

export interface Settings {
	max_length: number
	max_per_agent: number
	expire_after_days: number
	expire_every_s: number
}

/** The settings under `plugins.notes` of gateway.yaml: found by the name of this file. */
export default {
	schema: (joi) =>
		joi.object({
			max_length: joi.number().integer().min(1).max(10_000).default(1000).description('Maximum characters of a note.'),
			max_per_agent: joi.number().integer().min(1).max(10_000).default(200).description('Maximum notes of an agent.'),
			expire_after_days: joi.number().min(0).max(3650).default(365).description('Days until a note is deleted.'),
			expire_every_s: joi
				.number()
				.integer()
				.min(1)
				.max(86_400)
				.default(3600)
				.description('Seconds between deletions of expired notes.'),
		}),
} satisfies SettingsDeclaration<Settings>
