/** Checks of `svc doctor`: found by the name of this file. Findings are plain data, so only types are imported. */
import type { DoctorFile } from 'svc-gateway'

interface Usage {
	agent: string
	notes: number
	max: number
}

/** The part of the limit from which the check warns. */
const NEARLY = 0.9

export default {
	checks: [
		{
			id: 'notes.full',
			about: 'whether agents can keep more notes',
			async run(context) {
				const gateway = await context.gateway()
				if (!gateway) return []
				const usage = await gateway.get<Usage[]>('/v1/notes/usage')
				const full = usage.filter(({ notes, max }) => notes >= max * NEARLY)
				if (full.length === 0) return { level: 'ok', message: 'every agent can keep more notes', fix: null }
				return full.map(({ agent, notes, max }) => ({
					level: 'warning',
					message: `agent ${agent} has ${notes} notes of ${max}`,
					fix: `delete some (svc notes list --agent ${agent}), or raise plugins.notes.max_per_agent`,
				}))
			},
		},
	],
} satisfies DoctorFile
