import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { parse } from 'yaml'
import { setSetting, unsetSetting } from '../../../config/edit.ts'
import { allKeys, explain, pathOf } from '../../../config/explain.ts'
import type { Explanation } from '../../../config/explain.ts'
import { configFile } from '../../../config/home.ts'
import { originOf, readConfig } from '../../../config/read.ts'
import type { Origin } from '../../../config/read.ts'
import { changeConfig } from '../../../config/write.ts'
import { isFault } from '../../errors.ts'
import type { Fault } from '../../errors.ts'
import { checkPluginSettings } from '../../plugin-settings.ts'
import { takenAtStart } from '../../wish.ts'
import { CliError } from '../contract.ts'
import type { Register, Style } from '../contract.ts'
import { noWaitOption, takenOver, tellOf } from '../taken-over.ts'
import type { TakenOver } from '../taken-over.ts'

type InForce = Extract<TakenOver, { state: 'in_force' }>

interface Options {
	wait: boolean
}

/** What is in force for one key. */
interface Current extends Explanation {
	value?: unknown
	origin?: Origin
}

const secretKey = /key|token|secret|passw/i
const HIDDEN = '(hidden)'

export const register: Register = (program, cli) => {
	const { env, home, out } = cli
	const config = program
		.command('config')
		.description('Check, explain and change the settings of gateway.yaml, with or without a running gateway')
		.addHelpText('after', examples)

	config
		.command('path')
		.description('Show where gateway.yaml is')
		.action(() => out.answer({ path: configFile(home) }, ({ path }) => path))

	config
		.command('validate [file]')
		.description('Check gateway.yaml, or another file, with the environment as it is here')
		.action(async (name?: string) => {
			const file = name === undefined ? configFile(home) : resolve(cli.cwd, name)
			await checkPluginSettings(readConfig({ home, env, file, mustSay: name !== undefined }))
			out.answer({ file, valid: true }, (_, style) => `${style.good('valid')} ${file}`)
		})

	config
		.command('explain [key]')
		.description('Show what a setting means, which values it takes, its value and where that comes from')
		.action((key?: string) => {
			if (key !== undefined) return out.answer(current(pathOf(key)), explained)
			const all = allKeys().map((one) => explain(pathOf(one.replaceAll('<name>', 'x'))))
			out.answer(all, (list, style) =>
				style.table(
					['setting', 'default', 'meaning'],
					list.map((one) => [one.key, 'default' in one ? inWords(one.default) : '', one.meaning]),
				),
			)
		})

	config
		.command('get [key]')
		.description('Show a setting that is in force, or all; keys and tokens stay hidden')
		.action((key = '') => {
			const { value } = current(pathOf(key))
			if (value === undefined) throw new CliError('not_found', `${key} has no value; see "svc config explain ${key}"`)
			out.answer(value, (found) => (typeof found === 'string' ? found : JSON.stringify(found, null, 2)))
		})

	config
		.command('set <key> <value>')
		.description(
			'Change a setting, and wait until a running gateway has taken it over. The value is YAML; - reads it from standard input',
		)
		.option(...noWaitOption)
		.action(async (key: string, given: string, options: Options) => {
			const path = pathOf(key)
			const found = explain(path)
			if (given !== '-') refuseSecret(key, given)
			const text = given === '-' ? String(await cli.ask.input()).replace(/\r?\n$/, '') : given
			const value = valueOf(text, found)
			await change((before) => setSetting(before, path, value), key, options)
		})

	config
		.command('unset <key>')
		.description('Take a setting out of the file: its default is in force again')
		.option(...noWaitOption)
		.action((key: string, options: Options) => change((before) => unsetSetting(before, pathOf(key)), key, options))

	async function change(make: (before: string) => string, key: string, { wait }: Options): Promise<void> {
		const isNew = !existsSync(home)
		const { file, changed, problems } = await changeConfig({ home, env, change: make, check: checkPluginSettings })
			.catch((error: unknown) => {
				throw isFault(error, 'config_invalid') ? unchanged(error, pathOf(key)) : error
			})
			.finally(() => {
				if (isNew && existsSync(home)) out.note(`Made a new home at ${home}.`)
			})
		for (const { path, message } of problems) out.note(out.style.warn(`still wrong in the file: ${path}: ${message}`))
		const path = pathOf(key)
		// What is in force may come from the environment all the same.
		const now: Current = problems.length > 0 ? explain(path) : current(path)
		const taken = wait ? await takenOver(cli, file) : null
		const isLate = takenAtStart.some((section) => section === path[0])
		out.answer({ file, changed, ...now, gateway: taken && (isLate ? 'at_next_start' : taken.state) }, (one, style) => {
			const said = changed ? `${style.good('changed')} ${file}` : `${file} says so already`
			const variable = one.origin?.from === 'environment' ? one.origin.variable : undefined
			if (variable !== undefined) return `${said}\n${style.warn(`${variable} in the environment wins over it here`)}`
			if (isLate) return `${said}\nIt takes effect at the next start.`
			return taken?.state === 'in_force' ? `${said}\n${inForce(path, taken, style)}` : said
		})
		tellOf(cli, taken)
	}

	function unchanged({ message, code, errors = [] }: Fault, [section, provider]: string[]): CliError {
		const isAboutDefault = section === 'providers' && errors.some(({ path }) => path === 'default_provider')
		const order = isAboutDefault ? orderFor(provider) : undefined
		const advice = order ? ` First: ${order}. Then the same again.` : ''
		return new CliError('config', `${message}\nNothing was changed.${advice}`, { code })
	}

	/** What comes before a provider is added or taken out, where the default stands in the way. */
	function orderFor(provider: string | undefined): string | undefined {
		try {
			const { providers, default_provider } = readConfig({ home, env })
			if (provider !== default_provider) return `svc config set default_provider ${default_provider}`
			const other = Object.keys(providers).find((name) => name !== provider)
			return other === undefined ? 'svc config unset default_provider' : `svc config set default_provider ${other}`
		} catch (error) {
			if (isFault(error)) return undefined // more is wrong in the file, and told
			throw error
		}
	}

	function current(path: string[]): Current {
		const found = explain(path)
		const config = readConfig({ home, env })
		const value = path.reduce<unknown>(
			(at, name) =>
				typeof at === 'object' && at !== null && Object.hasOwn(at, name)
					? (at as Record<string, unknown>)[name]
					: undefined,
			config,
		)
		if (value === undefined) return found
		return { ...found, value: hidden(value, path.at(-1)), origin: originOf(config, path.join('.')) }
	}
}

/** What the running gateway makes of a setting. */
function inForce(path: readonly string[], { variables, trouble }: InForce, style: Style): string {
	const variable = variables[path.join('.')]
	if (variable !== undefined) return style.warn(`${variable} in the environment of the running gateway wins over it.`)
	const [section, plugin = ''] = path
	const why = section === 'plugins' && Object.hasOwn(trouble, plugin) ? trouble[plugin] : undefined
	return why === undefined
		? 'The running gateway goes by it.'
		: style.warn(`The plugin does not run as it should: ${why}`)
}

/** Others on the machine can read the arguments of a program, and the shell keeps them in its history. */
function refuseSecret(key: string, given: string): void {
	const isReference = given.includes('${') || /^\s*\{\s*secret\s*:/.test(given)
	if (!secretKey.test(pathOf(key).at(-1) ?? '') || isReference || /^(true|false|null|\d+)$/.test(given)) return
	throw new CliError(
		'usage',
		`a secret is never given as an argument. Put it into the vault (svc vault set NAME) and write '{secret: NAME}', name a variable as '\${NAME}', or write - and give it on standard input`,
	)
}

function valueOf(text: string, { isText }: Explanation): unknown {
	if (isText) return text === 'null' ? null : text
	try {
		return parse(text, { schema: 'core' }) as unknown
	} catch {
		return text // the schema says what is wrong with it
	}
}

/** Keys and tokens, which may have come from the environment, are not for screens. */
function hidden(value: unknown, name: string | undefined): unknown {
	if (typeof value === 'string') return name !== undefined && secretKey.test(name) ? HIDDEN : value
	if (Array.isArray(value)) return value.map((item) => hidden(item, undefined))
	if (typeof value !== 'object' || value === null) return value
	const isHandle = Object.keys(value).join() === 'secret'
	return isHandle ? value : Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, hidden(inner, key)]))
}

function explained(one: Current, style: Style): string {
	return style.fields([
		['setting', one.key],
		['meaning', one.meaning],
		['values', one.type],
		...('default' in one ? [['default', inWords(one.default)] as [string, unknown]] : []),
		...(one.settings ? [['settings', one.settings] as [string, unknown]] : []),
		...('value' in one ? [['now', inWords(one.value)] as [string, unknown]] : []),
		...(one.origin ? [['from', from(one.origin)] as [string, unknown]] : []),
	])
}

function from(origin: Origin): string {
	if (origin.from === 'environment') return `the environment (${origin.variable})`
	return origin.from === 'file' ? origin.where : 'the default'
}

function inWords(value: unknown): string {
	if (Array.isArray(value) && value.length === 0) return 'none'
	return typeof value === 'string' ? value : JSON.stringify(value)
}

const examples = `
Exit code: 78 where a file holds an error, or the running gateway refuses the change.

Examples:
  svc config validate
  svc config explain runs.limits.steps
  svc config set server.port 8080
  svc config set providers.ollama '{kind: openai, base_url: http://127.0.0.1:11434/v1, model: qwen3}'
  svc config set default_provider ollama
  svc config unset server.port
  $EDITOR "$(svc config path)"`
