/** The questions about one server. Each may be asked again to correct its answer. */
import type { Cli } from '../../../core/cli/contract.ts'
import { problemWith } from './answers.ts'
import type { Answers, KeyPlace } from './answers.ts'
import type { Preset } from '../../shared/model-presets.ts'

/** The state of the questions. */
export interface Inquiry {
	readonly cli: Cli
	readonly answers: Answers
	readonly preset: Preset
	/** The models that the server lists; undefined if it does not. */
	models?: string[] | undefined
	/** The server has refused a call without a key, or with this one. */
	wantsKey: boolean
}

export function askAddress({ cli }: Pick<Inquiry, 'cli'>, initial?: string): Promise<string> {
	return cli.ask.text('What is the address of its API, with the version?', {
		placeholder: 'http://127.0.0.1:8000/v1',
		...(initial !== undefined && { initial }),
		validate: (typed) => problemWith({ base_url: typed }, cli),
	})
}

export function askModel({ cli, answers, preset, models }: Inquiry): Promise<string> {
	const validate = (typed: string): string | undefined => problemWith({ model: typed }, cli)
	if (models)
		return cli.ask.suggest('Which model?', models, { placeholder: 'type to search, or any other name', validate })
	return cli.ask.text('Which model? (The server does not list them.)', {
		placeholder: `such as ${preset.model}`,
		...(answers.model !== undefined && { initial: answers.model }),
		validate,
	})
}

export async function askKey({ cli, preset, models, wantsKey }: Inquiry): Promise<KeyPlace> {
	const typed = 'Type it now; it is stored in the vault'
	const fromEnv = 'Read it from an environment variable'
	const none = 'It needs none'
	const places = [typed, fromEnv]
	const place = await cli.ask.choice(
		'Where does the API key come from?',
		wantsKey ? places : models ? [none, ...places] : [...places, none],
	)
	if (place === none) return { from: 'none' }
	if (place === fromEnv) return askVariable(cli, preset.variable)
	const secret = await cli.ask.text('Name of the key in the vault?', {
		fallback: preset.variable,
		validate: (name) =>
			name.startsWith('sk-') || name.length > 64
				? 'this looks like the key itself; the next question asks for it'
				: problemWith({ key: { from: 'vault', secret: name } }, cli),
	})
	return typeKey(cli, secret)
}

export async function askVariable(cli: Cli, fallback: string): Promise<KeyPlace> {
	const variable = await cli.ask.text('Name of the environment variable?', {
		fallback,
		validate: (name) => {
			if (!/^[A-Za-z_]\w*$/.test(name)) return 'must be the name of a variable: letters, digits and "_"'
			return problemWith({ key: { from: 'env', variable: name } }, cli)
		},
	})
	return { from: 'env', variable }
}

export async function typeKey({ ask }: Cli, secret: string): Promise<KeyPlace> {
	const value = await ask.secret(`Key ${secret} (hidden; Enter if the vault has it already)`, {
		validate: (typed) =>
			/^[\x21-\x7e]{0,4096}$/.test(typed)
				? undefined
				: 'must be printable ASCII without spaces, at most 4,096 characters',
	})
	return { from: 'vault', secret, ...(value !== '' && { value }) }
}

/** The key itself; undefined if svc cannot read it. */
export function keyNow({ cli, answers: { key } }: Inquiry): string | undefined {
	if (key?.from === 'env') return cli.env[key.variable]
	return key?.from === 'vault' ? key.value : undefined
}
