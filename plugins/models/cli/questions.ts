/** The questions of `svc init`. The server is tried after each answer, and a refused answer can be corrected alone. */
import type { Cli } from '../../../core/cli/contract.ts'
import { CliError } from '../../../core/cli/contract.ts'
import { problemWith, wantedFrom } from './answers.ts'
import type { Answers, KeyPlace, Wanted } from './answers.ts'
import { listModels, tryModel } from './server.ts'
import type { Server, Verdict } from './server.ts'

export interface Asking {
	/** Whether the file has a provider of this name, which would be replaced. */
	isTaken(name: string): boolean
	/** Whether the built-in provider is an option. */
	mayBeOffline: boolean
	/** Replaces without asking. */
	yes: boolean
}

interface Preset {
	label: string
	name?: string
	base_url?: string
	/** The usual location of its key. */
	variable: string
	/** It accepts calls without a key. */
	isOpen: boolean
	/** An example of a model. */
	model: string
}

const presets = {
	openai: {
		label: 'OpenAI',
		name: 'openai',
		base_url: 'https://api.openai.com/v1',
		variable: 'OPENAI_API_KEY',
		isOpen: false,
		model: 'gpt-4o-mini',
	},
	ollama: {
		label: 'Ollama on this machine',
		name: 'ollama',
		base_url: 'http://127.0.0.1:11434/v1',
		variable: 'OLLAMA_API_KEY',
		isOpen: true,
		model: 'qwen3',
	},
	other: {
		label: "Another server with OpenAI's API",
		variable: 'MODELS_API_KEY',
		isOpen: false,
		model: 'qwen3',
	},
} satisfies Record<string, Preset>

const OFFLINE = 'None yet: use the built-in provider, without network'

type Failure = Exclude<Verdict, { state: 'ok' }>
type Way = 'address' | 'key' | 'elsewhere' | 'model' | 'again' | 'onward' | 'leave'

/** The likely cause first. */
const waysFor: Record<Failure['state'], Way[]> = {
	unreachable: ['address', 'again', 'model', 'key'],
	denied: ['key', 'elsewhere', 'address', 'model', 'again'],
	refused: ['model', 'again', 'key', 'address'],
}

/**
 * Asks for missing answers and writes each into `answers` at once, so that nothing is lost when this throws.
 * Undefined for the built-in provider. Throws `interrupted` after Ctrl-C, and `failed` if the operator leaves.
 */
export async function askForProvider(cli: Cli, answers: Answers, asking: Asking): Promise<Wanted | undefined> {
	const { ask, env, out, signal } = cli
	let models: string[] | undefined
	let wantsKey = false

	dropInvalid()
	const preset: Preset | undefined = answers.base_url === undefined ? await whichServer() : presets.other
	if (!preset) return undefined
	const name = await settledName(preset)
	answers.base_url ??= preset.base_url ?? (await askAddress())
	await connect(preset)
	answers.key ??= preset.isOpen && !wantsKey ? { from: 'none' } : await askKey(preset)
	if (answers.key.from === 'vault' && answers.key.value === undefined) answers.key = await typeKey(answers.key.secret)
	if (keyNow() !== undefined) await connect(preset)
	answers.model ??= await askModel(preset)
	await test(preset)
	const { base_url, key, model } = answers
	return wantedFrom({ name, base_url, key, model })

	/** Options may be invalid too; those are asked for. */
	function dropInvalid(): void {
		const options = { name: '--name', base_url: '--base-url', key: '--key-env', model: '--model' } as const
		for (const part of ['name', 'base_url', 'key', 'model'] as const) {
			const problem = answers[part] === undefined ? undefined : problemWith({ [part]: answers[part] }, cli)
			if (problem === undefined) continue
			const option = part === 'key' && answers.key?.from === 'vault' ? '--key-secret' : options[part]
			out.note(out.style.warn(`${option}: ${problem}`))
			delete answers[part]
		}
	}

	async function whichServer(): Promise<Preset | undefined> {
		const all = Object.values<Preset>(presets)
		const offline = asking.mayBeOffline ? [OFFLINE] : []
		const label = await ask.choice('Where do the models run?', [...all.map((one) => one.label), ...offline])
		return all.find((one) => one.label === label)
	}

	async function settledName(preset: Preset): Promise<string> {
		let name = answers.name ?? preset.name
		for (;;) {
			name ??= await ask.text('What do you want to call it?', {
				fallback: 'models',
				validate: (typed) => problemWith({ name: typed }, cli),
			})
			if (asking.yes || !asking.isTaken(name) || (await ask.confirm(`Replace the provider ${name}?`)))
				return (answers.name = name)
			name = undefined
		}
	}

	function askAddress(initial?: string): Promise<string> {
		return ask.text('What is the address of its API, with the version?', {
			placeholder: 'http://127.0.0.1:8000/v1',
			...(initial !== undefined && { initial }),
			validate: (typed) => problemWith({ base_url: typed }, cli),
		})
	}

	async function askKey(preset: Preset): Promise<KeyPlace> {
		const typed = 'Type it now: the vault of the gateway keeps it'
		const fromEnv = 'Read it from an environment variable'
		const none = 'It needs none'
		const places = [typed, fromEnv]
		const place = await ask.choice(
			'Which key does it take?',
			wantsKey ? places : models ? [none, ...places] : [...places, none],
		)
		if (place === none) return { from: 'none' }
		if (place === fromEnv) return askVariable(preset.variable)
		const secret = await ask.text('Name of the key in the vault?', {
			fallback: preset.variable,
			validate: (name) =>
				looksLikeKey(name)
					? 'this looks like the key itself; it is asked for next'
					: problemWith({ key: { from: 'vault', secret: name } }, cli),
		})
		return typeKey(secret)
	}

	async function askVariable(fallback: string): Promise<KeyPlace> {
		const variable = await ask.text('Name of the environment variable?', {
			fallback,
			validate: (name) => {
				if (!/^[A-Za-z_]\w*$/.test(name)) return 'must be the name of a variable: letters, digits and "_"'
				return problemWith({ key: { from: 'env', variable: name } }, cli)
			},
		})
		return { from: 'env', variable }
	}

	async function typeKey(secret: string): Promise<KeyPlace> {
		const value = await ask.secret(`Key ${secret} (hidden; Enter if the vault has it already)`, {
			validate: (typed) =>
				/^[\x21-\x7e]{0,4096}$/.test(typed)
					? undefined
					: 'must be printable ASCII without spaces, at most 4,096 characters',
		})
		return { from: 'vault', secret, ...(value !== '' && { value }) }
	}

	async function askModel(preset: Preset): Promise<string> {
		const validate = (typed: string): string | undefined => problemWith({ model: typed }, cli)
		if (models)
			return ask.suggest('Which model?', models, { placeholder: 'type to search, or any other name', validate })
		return ask.text('Which model? (The server does not list them.)', {
			placeholder: `such as ${preset.model}`,
			...(answers.model !== undefined && { initial: answers.model }),
			validate,
		})
	}

	/** Until the server accepts the address and the key, or the operator continues without. */
	async function connect(preset: Preset): Promise<void> {
		for (;;) {
			const verdict = await checked('Asking the server for its models', (server) => listModels(server, signal))
			models = verdict.state === 'ok' ? verdict.models : undefined
			if (verdict.state === 'ok') return
			wantsKey ||= verdict.state === 'denied'
			// The question for the key follows.
			const { key } = answers
			if (verdict.state === 'denied' && (!key || (key.from === 'vault' && key.value === undefined))) return
			const ways = waysFor[verdict.state].filter(
				(way) => way !== 'model' && (way !== 'key' || answers.key !== undefined),
			)
			if (!(await corrected(preset, verdict, [...ways, 'onward', 'leave'], 'Continue without this check'))) return
		}
	}

	/** Until the model answers, or the operator saves anyway. */
	async function test(preset: Preset): Promise<void> {
		for (;;) {
			if (answers.key?.from === 'vault' && keyNow() === undefined) {
				out.note('Not tested: only the gateway can read the key that its vault has. Try it with svc run.')
				return
			}
			const { model = '' } = answers
			const verdict = await checked(`Trying ${model}`, (server) => tryModel(server, model, signal))
			if (verdict.state === 'ok') return out.note(out.style.good(`${model} answers.`))
			wantsKey ||= verdict.state === 'denied'
			if (!(await corrected(preset, verdict, [...waysFor[verdict.state], 'onward', 'leave'], 'Save it anyway'))) return
		}
	}

	/** False if the operator continues anyway. */
	async function corrected(preset: Preset, { message }: Failure, ways: Way[], onward: string): Promise<boolean> {
		const { key } = answers
		const canRetype = key?.from === 'vault' || key?.from === 'env'
		const labels: Record<Way, string> = {
			address: 'Correct the address',
			key: canRetype ? 'Correct the key' : 'Give it a key',
			elsewhere: 'Take the key from somewhere else',
			model: 'Choose another model',
			again: 'Try again',
			onward,
			leave: 'Leave without saving',
		}
		const offered = ways.filter((way) => way !== 'elsewhere' || canRetype)
		const label = await ask.choice(
			`${message}\nWhat do you want to do?`,
			offered.map((way) => labels[way]),
		)
		switch (offered.find((way) => labels[way] === label)) {
			case 'address':
				answers.base_url = await askAddress(answers.base_url)
				break
			case 'key':
				if (key?.from === 'vault') answers.key = await typeKey(key.secret)
				else if (key?.from === 'env') answers.key = await askVariable(key.variable)
				else answers.key = await askKey(preset)
				break
			case 'elsewhere':
				answers.key = await askKey(preset)
				break
			case 'model':
				answers.model = await askModel(preset)
				break
			case 'onward':
				return false
			case 'leave':
				throw new CliError('failed', '')
			default:
		}
		return true
	}

	async function checked(doing: string, check: (server: Server) => Promise<Verdict>): Promise<Verdict> {
		using _ = out.progress(doing, { terminalOnly: true })
		return await check({ base_url: (answers.base_url ?? '').replace(/\/+$/, ''), api_key: keyNow() })
	}

	function keyNow(): string | undefined {
		const { key } = answers
		if (key?.from === 'env') return env[key.variable]
		return key?.from === 'vault' ? key.value : undefined
	}
}

function looksLikeKey(name: string): boolean {
	return name.startsWith('sk-') || name.length > 64
}
