import { resolve } from 'node:path'
import { parse } from 'yaml'
import { setSetting, unsetSetting } from '../../../config/edit.ts'
import { allKeys, explain, pathOf } from '../../../config/explain.ts'
import type { Explanation } from '../../../config/explain.ts'
import { configFile } from '../../../config/home.ts'
import { originOf, readConfig } from '../../../config/read.ts'
import type { Origin } from '../../../config/read.ts'
import { changeConfig } from '../../../config/write.ts'
import { CliError } from '../contract.ts'
import type { Register, Style } from '../contract.ts'

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
		.action((name?: string) => {
			const file = name === undefined ? configFile(home) : resolve(cli.cwd, name)
			readConfig({ home, env, file, mustSay: name !== undefined })
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
			'Change a setting; a running gateway takes it over at once. The value is YAML; - reads it from standard input',
		)
		.action(async (key: string, given: string) => {
			const path = pathOf(key)
			const found = explain(path)
			if (given !== '-') refuseSecret(key, given)
			const text = given === '-' ? String(await cli.ask.input()).replace(/\r?\n$/, '') : given
			const value = valueOf(text, found)
			change((before) => setSetting(before, path, value), key)
		})

	config
		.command('unset <key>')
		.description('Take a setting out of the file: its default is in force again')
		.action((key: string) => {
			change((before) => unsetSetting(before, pathOf(key)), key)
		})

	function change(make: (before: string) => string, key: string): void {
		const { file, changed, problems } = changeConfig({ home, env, change: make })
		for (const { path, message } of problems) out.note(out.style.warn(`still wrong in the file: ${path}: ${message}`))
		const path = pathOf(key)
		// What is in force may come from the environment all the same.
		const now: Current = problems.length > 0 ? explain(path) : current(path)
		out.answer({ file, changed, ...now }, (one, style) => {
			const said = changed ? `${style.good('changed')} ${file}` : `${file} says so already`
			const variable = one.origin?.from === 'environment' ? one.origin.variable : undefined
			if (variable !== undefined) return `${said}\n${style.warn(`${variable} in the environment wins over it here`)}`
			const late = ['store', 'log'].includes(path[0] ?? '') ? '\nIt takes effect at the next start.' : ''
			return said + late
		})
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
Exit code: 78 where a file holds an error.

Examples:
  svc config validate
  svc config explain runs.limits.steps
  svc config set server.port 8080
  svc config set providers.ollama '{kind: openai, base_url: http://127.0.0.1:11434/v1, model: qwen3}'
  svc config set default_provider ollama
  svc config unset server.port
  $EDITOR "$(svc config path)"`
