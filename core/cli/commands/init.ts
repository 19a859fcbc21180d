import { setSetting } from '../../../config/edit.ts'
import { prepareHome } from '../../../config/first-start.ts'
import { configFile } from '../../../config/home.ts'
import { originOf, readConfig } from '../../../config/read.ts'
import type { Config } from '../../../config/types.ts'
import { changeConfig } from '../../../config/write.ts'
import { checkPluginSettings } from '../../plugin-settings.ts'
import { holderOf } from '../../lock.ts'
import { consent, yesOption } from '../consent.ts'
import { CliError } from '../contract.ts'
import type { Register } from '../contract.ts'
import { noWaitOption, takenOver, tellOf } from '../taken-over.ts'

interface InitOptions {
	kind?: string
	name?: string
	baseUrl?: string
	model?: string
	keyEnv?: string
	keySecret?: string
	yes?: boolean
	wait: boolean
}

/** One provider, as it goes into gateway.yaml. */
interface Wanted {
	name: string
	settings: { kind: 'openai'; base_url: string; api_key?: string | { secret: string }; model: string }
}

const openaiUrl = 'https://api.openai.com/v1'
const ollamaUrl = 'http://127.0.0.1:11434/v1'

/** What is asked first. */
const services = {
	openai: 'OpenAI',
	ollama: 'Ollama on this machine',
	other: "another server that speaks OpenAI's API",
	offline: 'none yet: the built-in provider, without network',
} as const

type Service = keyof typeof services

export const register: Register = (program, cli) => {
	const { ask, env, home, out } = cli
	program
		.command('init')
		.description(
			'Set up the home folder, gateway.yaml and a model provider; what is there already stays, unless you say so',
		)
		.option('--kind <kind>', 'openai, for all that speak its API, or offline; without it you are asked')
		.option('--name <name>', 'what you call the provider')
		.option('--base-url <url>', `address of its API, such as ${ollamaUrl}`)
		.option('--model <model>', 'model for agents that name none')
		.option('--key-env <variable>', 'the environment variable that holds the key')
		.option('--key-secret <secret>', 'the secret of the vault that holds the key')
		.option(...yesOption)
		.option(...noWaitOption)
		.addHelpText('after', examples)
		.action(async (options: InitOptions) => {
			const { first } = prepareHome(home)
			const wanted = options.kind === undefined ? await asked() : given(options)
			const replaces = wanted ? await write(wanted, options) : false
			const file = configFile(home)
			const taken = options.wait ? await takenOver(cli, file) : null
			const runs = taken !== null || (await holderOf(home)) !== null
			const verb = replaces ? 'Changed' : 'Added'
			const answer = { home, file, created: first, provider: wanted?.name ?? null, gateway: taken && taken.state }
			out.answer(answer, (_, style) =>
				[
					first
						? `Made ${file}`
						: wanted
							? `${verb} provider ${wanted.name} ${replaces ? 'in' : 'to'} ${file}`
							: `Kept ${file}`,
					wanted
						? `Models: ${wanted.name} (${wanted.settings.model})`
						: 'Models: as the file says; the built-in provider where it names none',
					...(taken?.state === 'in_force' ? ['The running gateway goes by it.'] : []),
					'',
					runs ? 'Next:' : `Next: ${style.bold('svc start')}, and in another terminal`,
					...keyAdvice(wanted),
					'  svc agents create ada',
					'  svc run ada "Hello"',
				].join('\n'),
			)
			tellOf(cli, taken)
		})

	/** Undefined where no provider is wanted, or nobody can be asked. */
	async function asked(): Promise<Wanted | undefined> {
		if (!ask.canAsk) return undefined
		const label = await ask.choice('Where do the models run?', Object.values(services))
		const service = (Object.keys(services) as Service[]).find((key) => services[key] === label)
		switch (service) {
			case 'openai': {
				const model = await ask.text('Which model?', { initial: 'gpt-4o-mini' })
				return {
					name: 'openai',
					settings: { kind: 'openai', base_url: openaiUrl, ...(await askedKey('OPENAI_API_KEY')), model },
				}
			}
			case 'ollama': {
				const model = await ask.text('Which model (ollama list shows them)?', { initial: 'qwen3' })
				return { name: 'ollama', settings: { kind: 'openai', base_url: ollamaUrl, model } }
			}
			case 'other': {
				const name = await ask.text('What shall it be called?', { initial: 'models' })
				const base_url = await ask.text('Address of its API, with the version?', {
					initial: 'http://127.0.0.1:8000/v1',
				})
				const model = await ask.text('Which model?')
				const key = (await ask.confirm('Does it need a key?')) ? await askedKey('MODELS_API_KEY') : {}
				return { name, settings: { kind: 'openai', base_url, ...key, model } }
			}
			default:
				return undefined
		}
	}

	async function askedKey(variable: string): Promise<{ api_key: string | { secret: string } }> {
		const fromEnv = `in the environment variable ${variable}${env[variable] ? '' : ' (not set here)'}`
		const fromVault = `in the gateway's vault, as ${variable}`
		const where = await ask.choice('Where is its key?', [fromEnv, fromVault])
		return { api_key: where === fromEnv ? `\${${variable}}` : { secret: variable } }
	}

	/** True where it takes the place of a provider of that name. */
	async function write({ name, settings }: Wanted, options: InitOptions): Promise<boolean> {
		const before = configNow()
		const isSet = (path: string): boolean => before !== undefined && originOf(before, path).from === 'file'
		const replaces = isSet(`providers.${name}`)
		if (replaces) await consent(cli, options, `Replace the provider ${name} in ${configFile(home)}?`)
		const keepsDefault = isSet('default_provider') && before?.default_provider !== name
		const change = (text: string): string => {
			const changed = setSetting(text, ['providers', name], settings)
			return keepsDefault ? changed : setSetting(changed, ['default_provider'], name)
		}
		const { problems } = await changeConfig({ home, env, change, check: checkPluginSettings })
		for (const { path, message } of problems) out.note(out.style.warn(`still wrong in the file: ${path}: ${message}`))
		if (keepsDefault)
			out.note(
				`The default provider stays ${before?.default_provider}; svc config set default_provider ${name} changes that.`,
			)
		return replaces
	}

	/** Undefined where the file holds an error, which writing will tell. */
	function configNow(): Config | undefined {
		try {
			return readConfig({ home, env })
		} catch {
			return undefined
		}
	}
}

function given(options: InitOptions): Wanted | undefined {
	const { kind, baseUrl = openaiUrl, model, keyEnv, keySecret } = options
	if (kind === 'offline') return undefined
	if (kind !== 'openai') throw new CliError('usage', '--kind must be openai or offline')
	if (model === undefined)
		throw new CliError('usage', '--model is missing; give the name of a model that this server has')
	if (keyEnv !== undefined && keySecret !== undefined)
		throw new CliError('usage', 'give either --key-env or --key-secret')
	const key =
		keyEnv !== undefined
			? { api_key: `\${${keyEnv}}` }
			: keySecret !== undefined
				? { api_key: { secret: keySecret } }
				: {}
	const { name = baseUrl === openaiUrl ? 'openai' : 'models' } = options
	return { name, settings: { kind, base_url: baseUrl, ...key, model } }
}

function keyAdvice(wanted: Wanted | undefined): string[] {
	const key = wanted?.settings.api_key
	return typeof key === 'object' ? [`  svc vault set ${key.secret}`] : []
}

const examples = `
A key is never an argument: name the variable that holds it, or the secret of the vault.

Examples:
  svc init
  svc init --kind offline
  svc init --kind openai --model gpt-4o-mini --key-env OPENAI_API_KEY
  svc init --kind openai --name ollama --base-url http://127.0.0.1:11434/v1 --model qwen3`
