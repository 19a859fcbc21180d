import type { EventType } from '../../core/plugin.ts'

export default {
	'skill.installed': {
		description: 'A skill was installed and waits in quarantine for its approval.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			digest: 'The digest of its files, see [Writing skills](writing-skills.md#review-and-approval).',
			files: 'How many files it has.',
			source: '`url`, `archive` or `inline`.',
			'url?': 'Its address, without the query.',
		},
	},
	'skill.approved': {
		description: 'An operator approved a skill.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			digest: 'The digest of its files.',
			replaces: 'The id of the revision that was active; null: none.',
			by: 'The id of the token that approved; null: a local caller without one.',
		},
	},
	'skill.removed': {
		description: 'A skill was removed.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			status: 'What it was: `active` or `quarantined`.',
		},
	},
	'skill.invoked': {
		description: 'An agent calls a skill.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			call_id: 'The call, unique in its run.',
			arguments: 'The arguments, as JSON text; cut if long.',
		},
	},
	'skill.completed': {
		description: 'A skill answered.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			call_id: 'The call, unique in its run.',
			result: 'The result as the model gets it, as text; cut if long.',
		},
	},
	'skill.failed': {
		description: 'A skill failed or exceeded a limit.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			call_id: 'The call, unique in its run.',
			code: 'The [code of the error](http-api.md#codes).',
			message: 'What is wrong, for people.',
		},
	},
	'skill.logged': {
		description: 'What the program of a skill logged in one call.',
		payload: {
			skill: 'The name of the skill.',
			skill_id: 'The id of the revision.',
			lines: 'The lines, 8 KiB of text at most.',
		},
	},
} satisfies Record<string, EventType>
