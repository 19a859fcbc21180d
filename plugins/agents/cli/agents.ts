import { missingProviders } from './missing-providers.ts'
import { settingsOf } from '../../../core/cli/assignments.ts'
import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError, path } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { FieldError } from '../../../core/errors.ts'
import type { Cli, Style } from '../../../core/cli/contract.ts'
import { answerTable } from '../../../core/cli/lists.ts'
import { when } from '../../../core/cli/when.ts'
import { textInput } from '../../../core/cli/text-input.ts'

interface Agent {
	name: string
	persona: string | null
	config: Record<string, unknown>
	created_at: string
	skills?: { id: string; name: string }[]
	/** After a change: warnings about parts that the gateway stores but does not use. */
	warnings?: FieldError[]
}

interface Fields {
	persona?: string
	personaFile?: string
	set?: string[]
}

const fieldOptions = {
	'--persona <text>': 'its persona',
	'--persona-file <file>': 'read the persona from a file; - means standard input',
	'--set <key=value...>':
		'set a key of its config, such as provider=openai or limits.steps=20; an empty value or null removes it',
} as const

export default {
	examples: `
Examples:
  svc agents create ada --persona "You are a patient tutor."
  svc agents create bob --persona-file bob.md --set provider=ollama --set temperature=0.2
  svc agents update ada --set limits.steps=20 --set model=
  svc agents show ada --json
  svc agents delete ada --yes`,
	commands: {
		list: {
			description: 'List agents',
			async run(cli) {
				const list = await cli.api.request<Agent[]>('GET', '/v1/agents')
				answerTable(cli, list, 'No agents yet. Create one: svc agents create ada', (one) => ({
					agent: one.name,
					created: when(one.created_at),
				}))
			},
		},
		show: {
			description: 'Show an agent: persona, config and active skills',
			arguments: '<agent>',
			async run({ api, out }, { agent: name }: { agent: string }) {
				out.answer(await api.request<Agent>('GET', path`/v1/agents/${name}`), shown)
			},
		},
		create: {
			description: 'Create an agent',
			arguments: '<agent>',
			options: fieldOptions,
			async run(cli, { agent: name, ...fields }: { agent: string } & Fields) {
				const body = await bodyOf(cli, fields)
				const made = await cli.api.request<Agent>('POST', '/v1/agents', { name, ...body })
				warn(cli, made, body)
				cli.out.answer(
					made,
					(agent, style) => `Created ${agent.name}. Try: ${style.bold(`svc run ${agent.name} "Hello"`)}`,
				)
			},
		},
		update: {
			description: 'Change an agent; keys that are not given stay as they are',
			arguments: '<agent>',
			options: fieldOptions,
			async run(cli, { agent: name, ...fields }: { agent: string } & Fields) {
				if (Object.keys(fields).length === 0)
					throw new CliError('usage', 'nothing to change; see --help for the options')
				// The gateway replaces an inner map as a whole, so its other keys must be sent too.
				const isInner = fields.set?.some((assignment) => /^[^=]*\./.test(assignment))
				const present = isInner ? await cli.api.request<Agent>('GET', path`/v1/agents/${name}`) : undefined
				const body = await bodyOf(cli, fields, present?.config)
				const changed = await cli.api.request<Agent>('PATCH', path`/v1/agents/${name}`, body)
				warn(cli, changed, body)
				cli.out.answer(changed, shown)
			},
		},
		reset: {
			description: 'Start a new session with an empty history and short-term memory',
			arguments: '<agent>',
			async run({ api, out }, { agent: name }: { agent: string }) {
				const done = await api.request('POST', path`/v1/agents/${name}/reset`)
				out.answer(done, () => `${name} begins a new session.`)
			},
		},
		stop: {
			description: 'Cancel every run of an agent',
			arguments: '<agent>',
			async run({ api, out }, { agent: name }: { agent: string }) {
				const done = await api.request('POST', path`/v1/agents/${name}/stop`)
				out.answer(done, () => `All runs of ${name} are stopped.`)
			},
		},
		delete: {
			description: 'Delete an agent with its conversations, memories, skills and everything else that belongs to it',
			arguments: '<agent>',
			options: yesOption,
			async run(cli, { agent: name, ...options }: { agent: string; yes?: boolean }) {
				await consent(cli, options, `Delete ${name} and everything that belongs to it?`)
				await cli.api.request('DELETE', path`/v1/agents/${name}`)
				cli.out.answer({ agent: name, status: 'deleted' }, () => `Deleted ${name}.`)
			},
		},
	},
} satisfies Command

function warn(cli: Cli, { warnings = [] }: Agent, { config = {} }: { config?: object | undefined }): void {
	const { out } = cli
	for (const text of [...warnings.map((one) => `${one.path} ${one.message}`), ...missingProviders(cli, config)])
		out.note(out.style.warn(`Note: ${out.style.plain(text)}`))
}

async function bodyOf(cli: Cli, { persona, personaFile, set }: Fields, present = {}) {
	if (persona !== undefined && personaFile !== undefined)
		throw new CliError('usage', 'give either --persona or --persona-file')
	const text = personaFile === undefined ? persona : (await textInput(cli, personaFile)).trimEnd()
	return { persona: text, config: set && settingsOf(set, 'provider=openai or limits.steps=20', present) }
}

function shown({ name, persona, config, skills, created_at }: Agent, style: Style): string {
	return style.fields([
		['agent', name],
		['persona', persona],
		...Object.entries(config).map(([key, value]): [string, unknown] => [key, value]),
		...(skills ? [['skills', skills.map((skill) => skill.name)] as [string, unknown]] : []),
		['created', when(created_at)],
	])
}
