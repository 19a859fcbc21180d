import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parse } from 'yaml'
import { valueAt } from '../../../config/composition.ts'
import type { Explanation } from '../../../config/explain.ts'
import { originOf, variablesOf } from '../../../config/read.ts'
import type { ValueOrigin } from '../../../config/read.ts'
import { hintFor } from '../../../config/suggest.ts'
import { readRuntimeFile } from '../../process/runtime-file.ts'
import type { RuntimeFile } from '../../process/runtime-file.ts'
import { isFault } from '../../errors.ts'
import { holderOf } from '../../process/lock.ts'
import type { Fault } from '../../errors.ts'
import { checkConfig } from '../../host/check-config.ts'
import { checkPlace } from '../check-place.ts'
import {
	allKeys,
	changeConfig,
	composition,
	configFile,
	explain,
	isAppliedAtStart,
	isSecretName,
	migrateText,
	namePath,
	pathOf,
	placeIn,
	putSetting,
	readConfig,
	readText,
	refuse,
	unsetSetting,
	withoutSecrets,
} from '../../host/config.ts'
import type { Config } from '../../host/config.ts'
import { CliError } from '../contract.ts'
import type { Command } from '../command.ts'
import type { Cli, Style } from '../contract.ts'
import { answerTable } from '../lists.ts'
import { noWaitOption, warnOfRemaining, waitUntilApplied, reportUnapplied } from '../applied.ts'
import type { Applied } from '../applied.ts'
import { textInput } from '../text-input.ts'

type InForce = Extract<Applied, { state: 'in_force' }>

type InForceNow = Pick<RuntimeFile['settings'], 'variables' | 'refused'> & { in_force: unknown }

interface ConfigOptions {
	wait: boolean
}

/** The setting in force for a key. */
interface Current extends Explanation {
	value?: unknown
	origin?: ValueOrigin
}

export default {
	description: 'Check, explain and change the settings of gateway.yaml, with or without a running gateway',
	examples: `
Exit code: 78 if a file contains an error or the running gateway refuses the change.

Examples:
  svc config validate
  svc config migrate
  svc config explain runs.limits.steps
  svc config get server.port
  svc config get --file
  svc config set server.port 8080
  svc config set providers.ollama '{kind: openai, base_url: http://127.0.0.1:11434/v1, model: qwen3}'
  svc config set default_provider ollama
  svc config unset server.port
  $EDITOR "$(svc config path)"`,
	commands: {
		path: {
			description: 'Show where gateway.yaml is',
			run({ home, out }) {
				out.answer({ path: configFile(home) }, ({ path }) => path)
			},
		},
		validate: {
			description: 'Check gateway.yaml, or another file, with the current environment variables',
			arguments: '[file]',
			async run(cli, { file: name }: { file?: string }) {
				const { home, env } = cli
				const file = name === undefined ? configFile(home) : resolve(cli.cwd, name)
				const read = readConfig({ home, env, file, mustSay: name !== undefined })
				const omitted = await checkConfig(read, { home, env })
				const place = await checkPlace(read, { home, env })
				const warnings = [...omitted, ...place.warnings]
				for (const note of place.notes) cli.out.note(note)
				cli.out.answer({ file, valid: true, warnings }, (_, style) =>
					[...warnings.map((line) => style.warn(line)), `${style.good('valid')} ${file}`].join('\n'),
				)
			},
		},
		migrate: {
			description:
				'Rename settings in gateway.yaml that have a former name, keep comments and order, and wait until a running gateway has applied it',
			options: noWaitOption,
			async run(cli, { wait }: ConfigOptions) {
				const { home, env } = cli
				if (!existsSync(configFile(home))) {
					const message = `there is no ${configFile(home)}; "svc start" creates one`
					throw new CliError('not_found', message)
				}
				const renamed: { from: string; to: string }[] = []
				const result = await changeConfig({
					home,
					env,
					change(before) {
						const { text, renames } = migrateText(before)
						renamed.push(...renames)
						return text
					},
					check: async (read) => void (await checkConfig(read, { home, env })),
				})
				warnOfRemaining(cli, result)
				const { file, changed } = result
				const applied = wait && changed ? await waitUntilApplied(cli, file) : null
				cli.out.answer({ file, changed, renamed, gateway: applied && applied.state }, (_, style) =>
					changed
						? [
								`${style.good('changed')} ${file}`,
								...renamed.map(({ from, to }) => `${from} was renamed to ${to}`),
							].join('\n')
						: `${file} contains no former names`,
				)
				reportUnapplied(cli, applied)
			},
		},
		explain: {
			description: 'Show the meaning of a setting, the values that it accepts, its value and the source of the value',
			arguments: '[key]',
			async run(cli, { key }: { key?: string }) {
				if (key !== undefined) return cli.out.answer(await inForceOf(cli, pathFor(cli, key)), explained)
				const all = allKeys().map((one) => explain(pathOf(one.replaceAll('<name>', 'x'))))
				answerTable(cli, all, '(none)', (one) => ({
					setting: one.key,
					default: 'default' in one ? inWords(one.default) : '',
					meaning: one.meaning,
				}))
			},
		},
		get: {
			description:
				'Show one setting, or all, with defaults and environment variables: as the running gateway uses them, or else as the next start would. Keys and tokens are hidden',
			arguments: '[key]',
			options: { '--file': 'show the values in the file instead' },
			async run(cli, { key, file = false }: { key?: string; file?: boolean }) {
				const path = pathFor(cli, key ?? '')
				explain(path)
				const written = inFile(cli, path)
				const inForce = file ? undefined : await inForceNow(cli)
				const value = inForce ? valueAt(inForce.in_force, path) : written
				if (value === undefined) {
					const where = file ? 'is not set in the file' : 'has no value'
					throw new CliError('not_found', `${key} ${where}; see "svc config explain ${key}"`)
				}
				if (inForce) noteDifference(cli, path, inForce)
				cli.out.answer(value, (found) => (typeof found === 'string' ? found : JSON.stringify(found, null, 2)))
			},
		},
		set: {
			description:
				'Change a setting, and wait until a running gateway has applied it. The value is YAML; - reads it from standard input',
			arguments: '<key> <value>',
			options: noWaitOption,
			async run(cli, { key, value: given, ...options }: { key: string; value: string } & ConfigOptions) {
				const found = explain(pathFor(cli, key))
				if (given !== '-') refuseSecret(key, given)
				const text = given === '-' ? (await textInput(cli, '-')).replace(/\r?\n$/, '') : given
				const value = valueOf(text, found)
				await change(cli, (before) => putSetting(before, pathOf(key), value), key, options)
			},
		},
		unset: {
			description: 'Remove a setting from the file; its default applies again',
			arguments: '<key>',
			options: noWaitOption,
			async run(cli, { key, ...options }: { key: string } & ConfigOptions) {
				await change(cli, (before) => unsetSetting(before, placeIn(before, pathOf(key))), key, options)
			},
		},
	},
} satisfies Command

async function change(cli: Cli, make: (before: string) => string, key: string, { wait }: ConfigOptions): Promise<void> {
	const { home, env } = cli
	const isRunning = (await holderOf(home)) !== null
	const check = async (read: Config): Promise<void> => {
		refuseUnknownPlugin(read, home, pathOf(key))
		// Plugins that would not start do not refuse a change.
		await checkConfig(read, { home, env })
		// The running gateway may get other ports from its environment.
		if (isRunning) await checkPlace(read, { home, env, ports: false })
	}
	const isNew = !existsSync(home)
	const result = await changeConfig({ home, env, change: make, check })
		.catch((error: unknown) => {
			throw isFault(error, 'config_invalid') ? unchanged(cli, error, pathOf(key)) : error
		})
		.finally(() => {
			if (isNew && existsSync(home)) cli.out.note(`Created a new home at ${home}.`)
		})
	warnOfRemaining(cli, result)
	const { file, changed, problems } = result
	const path = pathFor(cli, key)
	// A variable of the environment may override the new value.
	const now: Current = problems.length > 0 ? explain(path) : current(cli, path)
	const applied = wait ? await waitUntilApplied(cli, file) : null
	const isLate = isAppliedAtStart(path)
	cli.out.answer(
		{ file, changed, ...now, gateway: applied && (isLate ? 'at_next_start' : applied.state) },
		(one, style) => {
			const outcome = changed ? `${style.good('changed')} ${file}` : `${file} already has this value`
			const variable = one.origin?.from === 'environment' ? one.origin.variable : undefined
			if (variable !== undefined)
				return `${outcome}\n${style.warn(`${variable} in the environment takes precedence here`)}`
			if (isLate) return `${outcome}\nIt takes effect at the next start.`
			return applied?.state === 'in_force' ? `${outcome}\n${inForce(path, applied, style)}` : outcome
		},
	)
	reportUnapplied(cli, applied)
}

/** The gateway itself only reports such a plugin, since its folder may be restored. */
function refuseUnknownPlugin(read: Config, home: string, [section, name = '']: string[]): void {
	const entry = section === 'plugins' ? read.plugins[name] : undefined
	if (entry === undefined || (typeof entry === 'object' && entry.path !== undefined)) return
	const folder = join(home, 'plugins')
	if (composition.plugins.has(name) || existsSync(join(folder, name))) return
	const names = [...composition.plugins.keys(), ...readdirSync(folder)]
	const message = `there is no such plugin, built in or in ${folder}${hintFor(name, names)}`
	throw refuse(read, [{ path: `plugins.${name}`, message, part: 'key' }])
}

function unchanged(cli: Cli, { message, code, errors = [] }: Fault, [section, provider]: string[]): CliError {
	const isAboutDefault = section === 'providers' && errors.some(({ path }) => path === 'default_provider')
	const order = isAboutDefault ? orderFor(cli, provider) : undefined
	const advice = order ? ` First: ${order}. Then run the same command again.` : ''
	return new CliError('config', `${message}\nNothing was changed.${advice}`, { code })
}

/** The command to run before a provider is added or removed, if `default_provider` prevents that. */
function orderFor({ home, env }: Cli, provider: string | undefined): string | undefined {
	try {
		const { providers, default_provider } = readConfig({ home, env })
		if (provider !== default_provider) return `svc config set default_provider ${default_provider}`
		const other = Object.keys(providers).find((name) => name !== provider)
		return other === undefined ? 'svc config unset default_provider' : `svc config set default_provider ${other}`
	} catch (error) {
		if (isFault(error)) return undefined // the file has another mistake, which is reported
		throw error
	}
}

/** The value in the file, with references as written; undefined if it is not set there. */
function inFile({ home }: Cli, path: string[]): unknown {
	const text = readText(configFile(home))
	const settings = parse(text, { schema: 'core', stringKeys: true }) as unknown
	return withoutSecrets(valueAt(settings, placeIn(text, path)), path.at(-1))
}

/** States the value in the file if another one is in force, and why. */
function noteDifference(cli: Cli, path: string[], { in_force, variables, refused }: InForceNow): void {
	const written = inFile(cli, path)
	if (written === undefined || typeof written === 'object' || written === valueAt(in_force, path)) return
	const variable = variables[path.join('.')]
	const why =
		refused !== null
			? 'the gateway refuses the file as it is now'
			: isAppliedAtStart(path)
				? 'it applies from the next start'
				: variable === undefined
					? undefined
					: `${variable} in the environment takes precedence`
	cli.out.note(`The file says ${inWords(written)}${why === undefined ? '' : `; ${why}`}.`)
}

/** As `current`, but of the running gateway if there is one: its environment may differ from that of this shell. */
async function inForceOf(cli: Cli, path: string[]): Promise<Current> {
	const found = explain(path)
	const inForce = await inForceNow(cli)
	const value = valueAt(inForce.in_force, path)
	if (value === undefined) return found
	noteDifference(cli, path, inForce)
	const shown = { ...found, value: withoutSecrets(value, path.at(-1)) }
	const variable = inForce.variables[path.join('.')]
	if (variable !== undefined) return { ...shown, origin: { from: 'environment', variable } }
	// A refused file does not show where the value in force came from.
	return inForce.refused === null ? { ...shown, origin: originInFile(cli, path) } : shown
}

function originInFile({ home, env }: Cli, path: string[]): ValueOrigin {
	const variables = Object.values(variablesOf(readConfig({ home, env })))
	const others = Object.fromEntries(Object.entries(env).filter(([name]) => !variables.includes(name)))
	return originOf(readConfig({ home, env: others }), path.join('.'))
}

async function inForceNow({ home, env }: Cli): Promise<InForceNow> {
	const running = (await holderOf(home)) === null ? undefined : readRuntimeFile(home)?.settings
	if (running?.in_force) return running
	const read = readConfig({ home, env })
	return { in_force: withoutSecrets(read), variables: variablesOf(read), refused: null }
}

function current({ home, env }: Cli, path: string[]): Current {
	const found = explain(path)
	const config = readConfig({ home, env })
	const value = valueAt(config, path)
	if (value === undefined) return found
	return { ...found, value: withoutSecrets(value, path.at(-1)), origin: originOf(config, path.join('.')) }
}

/** The one name of a plugin's setting, which may be written in two places of the file. */
function pathFor({ home }: Cli, key: string): string[] {
	const path = pathOf(key)
	const section = namePath(readText(configFile(home)), path)
	try {
		explain(section)
		return section
	} catch (error) {
		if (isFault(error, 'not_found')) return path
		throw error
	}
}

/** Whether the running gateway uses the setting. */
function inForce(path: readonly string[], { variables, trouble }: InForce, style: Style): string {
	const variable = variables[path.join('.')]
	if (variable !== undefined)
		return style.warn(`${variable} in the environment of the running gateway takes precedence.`)
	const [section, plugin = ''] = path
	const why = section === 'plugins' && Object.hasOwn(trouble, plugin) ? trouble[plugin] : undefined
	return why === undefined ? 'The running gateway uses it.' : style.warn(`The plugin has a problem: ${why}`)
}

/** Other users can read the arguments of a program, and the shell keeps them in its history. */
function refuseSecret(key: string, given: string): void {
	const isReference = given.includes('${') || /^\s*\{\s*secret\s*:/.test(given)
	if (!isSecretName(pathOf(key).at(-1) ?? '') || isReference || /^(true|false|null|\d+)$/.test(given)) return
	throw new CliError(
		'usage',
		`never pass a secret as an argument. Put it into the vault (svc vault set NAME) and write '{secret: NAME}', name a variable as '\${NAME}', or write - and pass it on standard input`,
	)
}

function valueOf(text: string, { isText }: Explanation): unknown {
	if (isText) return text === 'null' ? null : text
	try {
		return parse(text, { schema: 'core' }) as unknown
	} catch {
		return text // the schema reports what is wrong
	}
}

function explained(one: Current, style: Style): string {
	const pairs: [name: string, value: unknown][] = [
		['setting', one.key],
		['meaning', one.meaning],
		['values', one.type],
	]
	if ('default' in one) pairs.push(['default', inWords(one.default)])
	if (one.settings) pairs.push(['settings', one.settings])
	if ('value' in one) pairs.push(['now', inWords(one.value)])
	if (one.origin) pairs.push(['from', from(one.origin)])
	return style.fields(pairs)
}

function from(origin: ValueOrigin): string {
	if (origin.from === 'environment') return `the environment (${origin.variable})`
	return origin.from === 'file' ? origin.where : 'the default'
}

function inWords(value: unknown): string {
	if (Array.isArray(value) && value.length === 0) return 'none'
	return typeof value === 'string' ? value : JSON.stringify(value)
}
