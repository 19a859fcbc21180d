import { defined } from '../../../core/util/defined.ts'
import { originOf } from '../../../config/read.ts'
import { changeConfig, configFile, prepareHome, readConfig, setSetting } from '../../../core/host/config.ts'
import type { Config } from '../../../core/host/config.ts'
import { checkConfig } from '../../../core/host/check-config.ts'
import { holderOf } from '../../../core/process/lock.ts'
import { consent, yesOption } from '../../../core/cli/consent.ts'
import { CliError } from '../../../core/cli/contract.ts'
import type { Command } from '../../../core/cli/command.ts'
import type { Cli } from '../../../core/cli/contract.ts'
import { commandFor, wantedFrom } from './answers.ts'
import type { Answers, KeyPlace, WantedProvider } from './answers.ts'
import { dialects, isServerKind } from '../dialects.ts'
import { keepKey } from './keep-key.ts'
import { presetOf, presets } from '../../shared/model-presets.ts'
import { askForProvider } from './questions.ts'
import { noWaitOption, warnOfRemaining, waitUntilApplied, reportUnapplied } from '../../../core/cli/applied.ts'

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

const KINDS = [...Object.keys(dialects), 'offline']

export default {
	description:
		'Set up the home folder, gateway.yaml and a model provider. On a terminal, asks questions and tests the answers. Existing settings stay unless you confirm a change',
	options: {
		'--kind <kind>': {
			about:
				'the API of the server; openai for every server with chat completions. With --kind and --model, svc asks no questions',
			choices: KINDS,
		},
		'--name <name>': 'a name for the provider',
		'--base-url <url>': 'address of its API, such as http://127.0.0.1:11434/v1',
		'--model <model>': 'model for agents that name none',
		'--key-env <variable>': 'the environment variable that contains the key',
		'--key-secret <secret>': 'the secret of the vault that contains the key',
		...yesOption,
		...noWaitOption,
	},
	examples: `
On a terminal, svc init asks for missing options, lists the models of the server, and tests the model that you choose. If the
server refuses an answer, you correct only that answer. After Ctrl-C, svc prints the command with which you can continue.
With --kind and --model, or without a terminal, it asks nothing and tests nothing. A key is never an argument: give the name
of the variable or of the vault's secret that contains it, or type it at the hidden prompt.

Examples:
  svc init
  svc init --base-url http://127.0.0.1:11434/v1
  svc init --kind offline
  svc init --kind openai-responses --model gpt-4o-mini --key-env OPENAI_API_KEY
  svc init --kind anthropic --model claude-sonnet-4-5 --key-secret ANTHROPIC_API_KEY
  svc init --kind ollama --model qwen3
  svc init --kind openai --name local --base-url http://127.0.0.1:8000/v1 --model qwen3`,
	async run(cli, options: InitOptions) {
		const { home } = cli
		const { first } = prepareHome(home)
		const answers = answersFrom(options)
		const { wanted, replaces, mustStore } = await settled(cli, answers, options, first)
		const file = configFile(home)
		const applied = options.wait ? await waitUntilApplied(cli, file) : null
		const runs = applied !== null || (await holderOf(home)) !== null
		const verb = replaces ? 'Changed' : 'Added'
		const answer = { home, file, created: first, provider: wanted?.name ?? null, gateway: applied && applied.state }
		cli.out.answer(answer, (_, style) =>
			[
				first
					? `Created ${file}`
					: wanted
						? `${verb} provider ${wanted.name} ${replaces ? 'in' : 'to'} ${file}`
						: `Kept ${file}`,
				wanted
					? `Models: ${wanted.name} (${wanted.settings.model})`
					: 'Models: as set in the file, or the built-in provider if it has none',
				...(applied?.state === 'in_force' ? ['The running gateway uses it.'] : []),
				'',
				runs ? 'Next:' : `Next: ${style.bold('svc start')}, and in another terminal`,
				...(mustStore === undefined ? [] : [`  svc vault set ${mustStore}   (unless the vault has it)`]),
				'  svc agents create ada',
				'  svc run ada "Hello"',
			].join('\n'),
		)
		reportUnapplied(cli, applied)
	},
} satisfies Command

interface Settled {
	/** Undefined if no provider is wanted, or there is no terminal to ask at. */
	wanted: WantedProvider | undefined
	replaces: boolean
	/** The secret that must still be stored in the vault. */
	mustStore: string | undefined
}

/** Writes the answers. If that fails, shows what was kept. */
async function settled(cli: Cli, answers: Answers, options: InitOptions, first: boolean): Promise<Settled> {
	const { kind, model } = options
	const isComplete = kind === 'offline' || (kind !== undefined && model !== undefined)
	const isAsking = !isComplete && cli.ask.canAsk
	try {
		const wanted = isAsking
			? await askForProvider(cli, answers, {
					isTaken: (name) => isInFile(configNow(cli), `providers.${name}`),
					mayBeOffline: kind === undefined,
					yes: options.yes ?? false,
				})
			: given(answers, options)
		if (!wanted) return { wanted, replaces: false, mustStore: undefined }
		const mustStore = await secretToStore(cli, answers.key, isAsking)
		// The replacement was confirmed when the name was entered.
		const replaces = await write(cli, wanted, isAsking ? { ...options, yes: true } : options)
		return { wanted, replaces, mustStore }
	} catch (error) {
		if (isAsking) {
			const file = configFile(cli.home)
			cli.out.note(
				first ? `Created ${file} with the defaults; no provider was added.` : `Nothing was changed in ${file}.`,
			)
			cli.out.note(`To continue: ${commandFor(answers)}`)
		}
		throw error
	}
}

/** The secret that is not in the vault yet. */
async function secretToStore(cli: Cli, key: KeyPlace | undefined, isAsking: boolean): Promise<string | undefined> {
	if (key?.from !== 'vault') return undefined
	// The user answered that the vault has it.
	if (key.value === undefined) return isAsking ? undefined : key.secret
	const why = await keepKey(cli, key.secret, key.value)
	if (why === null) {
		cli.out.note(`Stored ${key.secret} in the vault.`)
		return undefined
	}
	cli.out.note(cli.out.style.warn(`The key is not in the vault yet: ${why}`))
	return key.secret
}

/** True if it replaces a provider of that name. */
async function write(cli: Cli, { name, settings }: WantedProvider, options: InitOptions): Promise<boolean> {
	const { home, env } = cli
	const before = configNow(cli)
	const replaces = isInFile(before, `providers.${name}`)
	if (replaces) await consent(cli, options, `Replace the provider ${name} in ${configFile(home)}?`)
	const keepsDefault = isInFile(before, 'default_provider') && before?.default_provider !== name
	const change = (text: string): string => {
		const changed = setSetting(text, ['providers', name], settings)
		return keepsDefault ? changed : setSetting(changed, ['default_provider'], name)
	}
	const result = await changeConfig({
		home,
		env,
		change,
		check: async (read) => void (await checkConfig(read, { home, env })),
	})
	warnOfRemaining(cli, result)
	if (keepsDefault)
		cli.out.note(
			`The default provider stays ${before?.default_provider}; svc config set default_provider ${name} changes that.`,
		)
	return replaces
}

function isInFile(config: Config | undefined, path: string): boolean {
	return config !== undefined && originOf(config, path).from === 'file'
}

/** Undefined if the file contains an error, which writing reports. */
function configNow({ home, env }: Cli): Config | undefined {
	try {
		return readConfig({ home, env })
	} catch {
		return undefined
	}
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/

function answersFrom({ kind, name, baseUrl, model, keyEnv, keySecret }: InitOptions): Answers {
	if (keyEnv !== undefined && keySecret !== undefined)
		throw new CliError('usage', 'give either --key-env or --key-secret')
	// Not repeated: it may be the key.
	if (keyEnv !== undefined && !VARIABLE.test(keyEnv))
		throw new CliError(
			'usage',
			'--key-env expects the name of an environment variable, such as OPENAI_API_KEY, not the key',
		)
	return {
		...(kind !== undefined && isServerKind(kind) && { kind }),
		...defined({ name, base_url: baseUrl, model }),
		...(keyEnv !== undefined && { key: { from: 'env', variable: keyEnv } as const }),
		...(keySecret !== undefined && { key: { from: 'vault', secret: keySecret } as const }),
	}
}

/** Without questions. Undefined if the options name no provider. */
function given(answers: Answers, { kind }: InitOptions): WantedProvider | undefined {
	if (kind === 'offline' || (kind === undefined && Object.keys(answers).length === 0)) return undefined
	const { kind: server = 'openai', key = { from: 'none' }, model } = answers
	const preset = presetOf(server, answers.base_url ?? presets.openai.base_url)
	const { base_url = preset.base_url } = answers
	if (base_url === undefined) throw new CliError('usage', '--base-url is missing; give the address of the API')
	if (model === undefined)
		throw new CliError('usage', '--model is missing; give the name of a model that this server has')
	const { name = base_url === preset.base_url ? preset.name : undefined } = answers
	return wantedFrom({ kind: server, name: name ?? 'models', base_url, key, model })
}
