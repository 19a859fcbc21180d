/** The questions of `svc init`, in their order. */
import type { Cli } from '../../../core/cli/contract.ts'
import { problemWith, wantedFrom } from './answers.ts'
import type { Answers, WantedProvider } from './answers.ts'
import { askAddress, askKey, askModel, keyNow, typeKey } from './inquiry.ts'
import type { Inquiry } from './inquiry.ts'
import { presetOf, presets } from '../../shared/model-presets.ts'
import type { Preset } from '../../shared/model-presets.ts'
import { connect, tryAnswers } from './trial.ts'

export interface ProviderQuestions {
	/** Whether the file has a provider of this name, which would be replaced. */
	isTaken(name: string): boolean
	/** Whether the built-in provider is an option. */
	mayBeOffline: boolean
	/** Replaces without asking. */
	yes: boolean
}

const OFFLINE = 'None yet: use the built-in provider, without network'

/**
 * Asks for missing answers, and writes each to `answers` at once, so that none is lost if this throws. The server is tested as
 * soon as the answers suffice.
 * Undefined for the built-in provider. Throws `interrupted` after Ctrl-C, and `failed` if the operator leaves.
 */
export async function askForProvider(
	cli: Cli,
	answers: Answers,
	asking: ProviderQuestions,
): Promise<WantedProvider | undefined> {
	dropInvalid(cli, answers)
	const isNamed = answers.kind !== undefined || answers.base_url !== undefined
	const preset = isNamed ? presetOf(answers.kind ?? 'openai', answers.base_url) : await whichServer(cli, asking)
	if (!preset) return undefined
	const kind = (answers.kind ??= preset.kind)
	const inquiry: Inquiry = { cli, answers, preset, wantsKey: false }
	const name = await settledName(inquiry, asking)
	answers.base_url ??= preset.base_url ?? (await askAddress(inquiry))
	await connect(inquiry)
	answers.key ??= preset.isOpen && !inquiry.wantsKey ? { from: 'none' } : await askKey(inquiry)
	if (answers.key.from === 'vault' && answers.key.value === undefined)
		answers.key = await typeKey(cli, answers.key.secret)
	if (keyNow(inquiry) !== undefined) await connect(inquiry)
	answers.model ??= await askModel(inquiry)
	await tryAnswers(inquiry)
	const { base_url, key, model } = answers
	return wantedFrom({ kind, name, base_url, key, model })
}

/** Drops invalid options, so that the questions ask for them. */
function dropInvalid(cli: Cli, answers: Answers): void {
	const { out } = cli
	const options = { name: '--name', base_url: '--base-url', key: '--key-env', model: '--model' } as const
	for (const part of ['name', 'base_url', 'key', 'model'] as const) {
		const problem = answers[part] === undefined ? undefined : problemWith({ [part]: answers[part] }, cli)
		if (problem === undefined) continue
		const option = part === 'key' && answers.key?.from === 'vault' ? '--key-secret' : options[part]
		out.note(out.style.warn(`${option}: ${problem}`))
		delete answers[part]
	}
}

async function whichServer({ ask }: Cli, { mayBeOffline }: ProviderQuestions): Promise<Preset | undefined> {
	const all = Object.values<Preset>(presets)
	const offline = mayBeOffline ? [OFFLINE] : []
	const label = await ask.choice('Where do the models run?', [...all.map((one) => one.label), ...offline])
	return all.find((one) => one.label === label)
}

async function settledName({ cli, answers, preset }: Inquiry, { isTaken, yes }: ProviderQuestions): Promise<string> {
	let name = answers.name ?? preset.name
	for (;;) {
		name ??= await cli.ask.text('What do you want to call it?', {
			fallback: 'models',
			validate: (typed) => problemWith({ name: typed }, cli),
		})
		if (yes || !isTaken(name) || (await cli.ask.confirm(`Replace the provider ${name}?`))) return (answers.name = name)
		name = undefined
	}
}
