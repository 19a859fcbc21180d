import { isObject } from '../core/util/is-object.ts'
import { pathIn, settingsOf } from './composition.ts'
import type { Composition } from './composition.ts'
import { coreVariables } from './core-sections.ts'
import type { Environment } from './home.ts'
import type { Problem } from './problems.ts'
import { suggest } from './suggest.ts'

/** The settings of the file, overridden by those of the environment. */
export interface Overlay {
	value: unknown
	/** Dotted path → variable. */
	origins: Map<string, string>
	problems: Problem[]
}

type Section = Record<string, unknown>

const PREFIX = 'SVC_'
/** Variables that override no setting: those of the gateway, then those of its command line. */
const otherVariables = ['SVC_HOME', 'SVC_ALLOW_SHARED_HOME', 'SVC_URL', 'SVC_TOKEN', 'SVC_DEBUG']

/** The environment takes precedence over the file. An empty variable counts as not set, since compose files create such variables. */
export function applyEnvironment({ plugins }: Composition, file: unknown, env: Environment): Overlay {
	const origins = new Map<string, string>()
	const problems: Problem[] = []
	const root = file ?? {}
	if (!isObject(root)) return { value: root, origins, problems }
	let value: Section = root

	for (const { path, variable, isNumber = false } of coreVariables) {
		const text = env[variable]
		if (!text) continue
		value = withValue(value, path.split('.'), isNumber ? wholeNumber(text) : text)
		origins.set(path, variable)
	}
	for (const plugin of plugins.values()) {
		for (const { path, variable, ...found } of plugin.environment?.(env, settingsOf(value, plugin)) ?? []) {
			const place = pathIn(plugin, path)
			if ('problem' in found) {
				problems.push({ path: place, message: found.problem, where: { variable: variable ?? '' } })
				continue
			}
			value = withValue(value, place.split('.'), found.value)
			if (variable !== undefined) origins.set(place, variable)
		}
	}
	return { value, origins, problems }
}

/** The environment with former names of variables replaced by present ones, unless those are set, and a warning for each. */
export function presentEnvironment(
	{ renamedVariables }: Composition,
	env: Environment,
): { env: Environment; warnings: Problem[] } {
	const used = [...renamedVariables].filter(([former]) => env[former])
	if (used.length === 0) return { env, warnings: [] }
	const renamed = used.filter(([, present]) => !env[present]).map(([former, present]) => [present, env[former]])
	return {
		env: { ...env, ...(Object.fromEntries(renamed) as Environment) },
		warnings: used.map(([former, present]) => ({
			path: '',
			message: env[present]
				? `is the former name of ${present}, which is also set and takes precedence; remove ${former}`
				: `the variable is now named ${present}; set ${present}`,
			where: { variable: former },
		})),
	}
}

/** The variable that overrides each setting, by the path of the setting. */
export function overridingVariables(composition: Composition): Map<string, string> {
	const everything = new Proxy<Record<string, string>>({}, { get: () => '1' })
	return applyEnvironment(composition, {}, everything).origins
}

/**
 * Variables that begin with `SVC_` although neither the gateway nor the text of gateway.yaml uses them, each with the variable that
 * is probably meant. `others`: further variables that are used.
 */
export function unknownVariables(
	composition: Composition,
	env: Environment,
	{ text, others = [] }: { text: string; others?: readonly string[] },
): { name: string; meant: string | undefined }[] {
	const known = [
		...otherVariables,
		...overridingVariables(composition).values(),
		...[...composition.plugins.values()].flatMap(({ variables = {} }) => Object.keys(variables)),
		...others,
	].filter((name) => name.startsWith(PREFIX))
	// SVC_TEST_ variables do not concern operators.
	const isKnown = (name: string): boolean =>
		known.includes(name) ||
		composition.renamedVariables.has(name) ||
		name.startsWith('SVC_TEST_') ||
		text.includes(`\${${name}`)
	return Object.keys(env).flatMap((name) => {
		if (!name.startsWith(PREFIX) || isKnown(name)) return []
		// The common prefix would make all of them similar.
		const bare = suggest(
			name.slice(PREFIX.length),
			known.map((one) => one.slice(PREFIX.length)),
		)
		return { name, meant: bare && PREFIX + bare }
	})
}

/** A copy with the value. If a part of the path is not a section, the settings stay unchanged, and are refused later. */
export function withValue(settings: Section, [key = '', ...rest]: readonly string[], value: unknown): Section {
	if (rest.length === 0) return { ...settings, [key]: value }
	const inner = settings[key] ?? {}
	return isObject(inner) ? { ...settings, [key]: withValue(inner, rest, value) } : settings
}

/** The text as a number; if it is not a whole number, the text itself, which the schema then refuses. */
export function wholeNumber(text: string): unknown {
	return /^\d{1,15}$/.test(text) ? Number(text) : text
}
