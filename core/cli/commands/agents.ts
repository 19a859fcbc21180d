import { slipsIn } from '../agent-config.ts'
import { consent, yesOption } from '../consent.ts'
import { CliError, path } from '../contract.ts'
import type { Register, Style } from '../contract.ts'
import { when } from '../when.ts'
import { textInput } from '../text-input.ts'

interface Agent {
	name: string
	persona: string | null
	config: Record<string, unknown>
	created_at: string
	skills?: { id: string; name: string }[]
}

interface Fields {
	persona?: string
	personaFile?: string
	set?: string[]
}

interface Body {
	persona?: string
	config?: Record<string, unknown>
}

export const register: Register = (program, cli) => {
	const { api, out } = cli
	const agents = program
		.command('agents')
		.description('Create, list, change and delete agents')
		.addHelpText('after', examples)

	agents
		.command('list')
		.description('List agents')
		.action(async () => {
			const list = await api.request<Agent[]>('GET', '/v1/agents')
			out.answer(list, (all, style) =>
				style.table(
					['agent', 'created'],
					all.map((one) => [one.name, when(one.created_at)]),
					'No agents yet. Make one: svc agents create ada',
				),
			)
		})

	agents
		.command('show <agent>')
		.description('Show an agent: persona, config and active skills')
		.action(async (name: string) => out.answer(await api.request<Agent>('GET', path`/v1/agents/${name}`), shown))

	const withFields = (text: string, description: string) =>
		agents
			.command(text)
			.description(description)
			.option('--persona <text>', 'who it is')
			.option('--persona-file <file>', 'the same from a file, or from standard input for -')
			.option(
				'--set <key=value...>',
				'a key of its config, such as provider=openai or limits.steps=20; no value removes it',
			)

	withFields('create <agent>', 'Create an agent').action(async (name: string, fields: Fields) => {
		const body = await bodyOf(fields)
		const made = await api.request<Agent>('POST', '/v1/agents', { name, ...body })
		warn(body)
		out.answer(made, (agent, style) => `Created ${agent.name}. Try: ${style.bold(`svc run ${agent.name} "Hello"`)}`)
	})

	withFields('update <agent>', 'Change an agent; what is not named stays').action(
		async (name: string, fields: Fields) => {
			const body = await bodyOf(fields)
			if (Object.keys(body).length === 0) throw new CliError('usage', 'nothing to change; see --help for the options')
			const changed = await api.request<Agent>('PATCH', path`/v1/agents/${name}`, body)
			warn(body)
			out.answer(changed, shown)
		},
	)

	agents
		.command('reset <agent>')
		.description('Begin a new session: history and short-term memory are empty again')
		.action(async (name: string) => {
			const done = await api.request('POST', path`/v1/agents/${name}/reset`)
			out.answer(done, () => `${name} begins a new session.`)
		})

	agents
		.command('stop <agent>')
		.description('Cancel every run of an agent')
		.action(async (name: string) => {
			const done = await api.request('POST', path`/v1/agents/${name}/stop`)
			out.answer(done, () => `Nothing of ${name} runs any more.`)
		})

	agents
		.command('delete <agent>')
		.description('Delete an agent with its conversations, memories, skills and everything else of its own')
		.option(...yesOption)
		.action(async (name: string, options: { yes?: boolean }) => {
			await consent(cli, options, `Delete ${name} with everything of its own?`)
			await api.request('DELETE', path`/v1/agents/${name}`)
			out.answer({ agent: name, status: 'deleted' }, () => `Deleted ${name}.`)
		})

	function warn({ config }: Body): void {
		for (const slip of config ? slipsIn(cli, config) : []) out.note(out.style.warn(`Note: ${out.style.plain(slip)}`))
	}

	async function bodyOf({ persona, personaFile, set }: Fields): Promise<Body> {
		if (persona !== undefined && personaFile !== undefined)
			throw new CliError('usage', 'give either --persona or --persona-file')
		const text = personaFile === undefined ? persona : (await textInput(cli, personaFile)).trimEnd()
		return { ...(text !== undefined && { persona: text }), ...(set && { config: configOf(set) }) }
	}
}

/** `limits.steps=20` → `{limits: {steps: 20}}`. Values are read as JSON where they are JSON, else as text. */
function configOf(assignments: string[]): Record<string, unknown> {
	const config: Record<string, unknown> = Object.create(null)
	for (const text of assignments) {
		const [, key, value] = /^([^=]+)=(.*)$/s.exec(text) ?? []
		if (key === undefined || value === undefined)
			throw new CliError('usage', `--set takes key=value, such as provider=openai; "${text}" has no "="`)
		const [first = '', ...inner] = key.split('.')
		if (inner.length > 1) throw new CliError('usage', `--set ${key}: only keys such as limits.steps have a dot`)
		const [last] = inner
		if (last === undefined) config[first] = valueOf(value)
		else config[first] = { ...(config[first] as object | undefined), [last]: valueOf(value) }
	}
	return config
}

function valueOf(text: string): unknown {
	if (text === '') return null
	try {
		return JSON.parse(text)
	} catch {
		return text
	}
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

const examples = `
Examples:
  svc agents create ada --persona "You are a patient tutor."
  svc agents create bob --persona-file bob.md --set provider=ollama --set temperature=0.2
  svc agents update ada --set limits.steps=20 --set model=
  svc agents show ada --json
  svc agents delete ada --yes`
