import type { EventType } from '../../core/plugin.ts'

const skill = { skill: 'The name of the skill.', skill_id: 'The id of the revision.' }
const call = { ...skill, call_id: 'The call, unique in its run.' }

export default {
	'skill.installed': {
		description: 'A skill was installed and waits in quarantine for its approval.',
		payload: {
			...skill,
			digest: 'The digest of its files, see [Writing skills](writing-skills.md#review-and-approval).',
			files: 'How many files it has.',
			source: '`url`, `archive` or `inline`.',
			'url?': 'Its address, without the query.',
		},
	},
	'skill.approved': {
		description: 'An operator approved a skill.',
		payload: {
			...skill,
			digest: 'The digest of its files.',
			replaces: 'The id of the revision that was active; null: none.',
			by: 'The id of the token that approved; null: a local caller without one.',
		},
	},
	'skill.removed': {
		description: 'A skill was removed.',
		payload: {
			...skill,
			status: 'Its status before: `active` or `quarantined`.',
		},
	},
	'skill.invoked': {
		description: 'An agent calls a skill.',
		payload: {
			...call,
			arguments: 'The arguments, as JSON text; cut if long.',
		},
	},
	'skill.completed': {
		description: 'A skill answered.',
		payload: {
			...call,
			result: 'The result as the model gets it, as text; cut if long.',
		},
	},
	'skill.failed': {
		description: 'A skill failed or exceeded a limit.',
		payload: {
			...call,
			code: 'The [code of the error](http-api.md#codes).',
			message: 'The error message, for people.',
		},
	},
	'skill.logged': {
		description: 'The program of a skill logged lines in one call.',
		payload: {
			...skill,
			lines: 'The lines, at most 8 KiB of text.',
		},
	},
} satisfies Record<string, EventType>
