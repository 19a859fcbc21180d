/**
 * A plugin's settings are in a section at the top of gateway.yaml or under `plugins.<name>`: two ways to write the same section.
 * This module moves them to one place, under the plugin's present name, and keeps the positions in the file.
 */
import { parseDocument } from 'yaml'
import { isObject } from '../core/util/is-object.ts'
import { hasSection, valueAt } from './composition.ts'
import type { Composition, DeclaredPlugin } from './composition.ts'
import { coreSections } from './core-sections.ts'
import { withValue } from './environment.ts'
import type { Problem } from './problems.ts'
import { renameSetting, setSetting, settingAt } from './edit.ts'
import { parseTree } from './tree.ts'
import type { Tree } from './tree.ts'

type Section = Record<string, unknown>

/** A tree of settings, and what the operator should change although it is valid. */
export interface Sections extends Tree {
	warnings: Problem[]
	/** Settings with a former name. */
	renames: Rename[]
}

/** The path in the file, and the path to write instead. */
export interface Rename {
	from: string
	to: string
}

/**
 * The tree with the settings of built-in plugins in their sections, and those of other plugins under `plugins`. Its paths
 * are those of the new place; `written` returns the path in the file. Problems are: settings in both places, settings of a built-in
 * plugin that has none, and a required plugin that is switched off.
 */
export function gatherSections(composition: Composition, tree: Tree): Sections {
	const { plugins: declared, renamed } = composition
	const { value: root } = tree
	if (!isObject(root)) return { ...tree, warnings: [], renames: [] }
	let value: Section = { ...root }
	const plugins: Section = isObject(root.plugins) ? { ...root.plugins } : {}
	/** New place → place in the file. */
	const moved = new Map<string, string>()
	const problems = [...tree.problems]
	const warnings: Problem[] = []
	const renames: Rename[] = []
	const report = (path: string, message: string, part: 'key' | 'value' = 'key'): void => {
		problems.push({ path, message, where: tree.locate(path, part) })
	}

	const written = (path: string): string => replaced(path, moved)

	for (const plugin of declared.values()) renameIn(plugin)
	for (const [name, entry] of Object.entries(plugins)) {
		const plugin = declared.get(name)
		if (plugin) plugins[name] = gatherFromBelow(plugin, entry)
	}
	for (const [name, section] of Object.entries(root)) if (hasContent(section)) gatherFromTop(name, section)
	if (isObject(root.plugins) || (!hasContent(root.plugins) && Object.keys(plugins).length > 0)) value.plugins = plugins

	for (const [from, to] of renamed) renameOne(from, to)

	const back = new Map([...moved].map(([to, from]) => [from, to]))
	const ofNewPlace = (paths: Set<string>): Set<string> => new Set([...paths].map((path) => replaced(path, back)))
	return {
		value,
		problems,
		warnings,
		renames,
		broken: ofNewPlace(tree.broken),
		replaced: ofNewPlace(tree.replaced),
		locate: (path, part) => tree.locate(written(path), part),
		has: (path) => tree.has(written(path)),
		written,
	}

	/** Renames an entry with a name that the plugin had in an earlier version. */
	function renameIn({ name, formerNames = [] }: DeclaredPlugin): void {
		for (const former of formerNames) {
			if (!Object.hasOwn(plugins, former)) continue
			const path = `plugins.${former}`
			const where = tree.locate(path, 'key')
			if (Object.hasOwn(plugins, name)) {
				const { line } = tree.locate(`plugins.${name}`, 'key')
				report(path, `is the former name of ${name}, which is also set in line ${line}; remove one of the two`)
			} else {
				plugins[name] = plugins[former]
				moved.set(`plugins.${name}`, path)
				renames.push({ from: path, to: `plugins.${name}` })
				warnings.push({ path, message: `the plugin is now named ${name}; write plugins.${name}`, where })
			}
			delete plugins[former]
		}
	}

	/** Moves a setting from the path that it had in an earlier version. */
	function renameOne(from: string, to: string): void {
		const found = valueAt(value, from)
		if (found === undefined) return
		const [path, target] = [written(from), written(to)]
		const where = tree.locate(path, 'key')
		if (valueAt(value, to) !== undefined) {
			const { line } = tree.locate(target, 'key')
			report(path, `is the former name of ${target}, which is also set in line ${line}; remove one of the two`)
		} else {
			value = withValue(value, to.split('.'), found)
			moved.set(to, path)
			renames.push({ from: path, to: target })
			warnings.push({ path, message: `the setting is ${target} now; "svc config migrate" renames it`, where })
		}
		value = withoutSetting(value, from.split('.'))
	}

	/** Moves the settings of a built-in plugin to its section, and returns the rest of its entry in `plugins`. */
	function gatherFromBelow(plugin: DeclaredPlugin, entry: unknown): unknown {
		const { name, at, required = false } = plugin
		const path = moved.get(`plugins.${name}`) ?? `plugins.${name}`
		const isOff = entry === false || (isObject(entry) && entry.enabled === false)
		if (required && isOff)
			report(
				entry === false ? path : `${path}.enabled`,
				`the gateway cannot run without ${name}; remove this line`,
				'value',
			)
		if (!isObject(entry)) return entry
		const { enabled, path: folder, ...settings } = entry
		const keys = Object.keys(settings)
		if (folder !== undefined) report(`${path}.path`, 'is for third-party plugins, and this one is built in; remove it')
		if (!hasSection(plugin)) {
			const advice = at ? `; at the top of the file there are ${Object.values(at).join(', ')}` : ''
			for (const key of keys) report(`${path}.${key}`, `is not a known setting: ${name} has none here${advice}`)
		} else if (keys.length > 0 && hasContent(value[name])) reportBoth(name, path)
		else if (keys.length > 0) {
			value[name] = settings
			moved.set(name, path)
		}
		return enabled === undefined ? {} : { enabled }
	}

	function gatherFromTop(name: string, section: unknown): void {
		const plugin = declared.get(name)
		// Settings switch on a plugin that is off by default, wherever they are.
		if (hasSection(plugin) && plugin?.onByDefault === false) plugins[name] ??= {}
		if (!isThirdParty(composition, plugins, name) || !isObject(section)) return
		delete value[name]
		const entry = plugins[name]
		const { enabled, path } = isObject(entry) ? entry : { enabled: entry }
		if (hasSettings(entry)) {
			reportBoth(name, `plugins.${name}`)
			return
		}
		plugins[name] = { ...section, ...(enabled !== undefined && { enabled }), ...(path !== undefined && { path }) }
		moved.set(`plugins.${name}`, name)
	}

	function reportBoth(name: string, below: string): void {
		const { line } = tree.locate(name, 'key')
		report(
			below,
			`has settings here (line ${tree.locate(below, 'key').line}) and at the top of the file (${name}, line ${line}); keep one of the two places`,
		)
	}
}

/** Whether a section at the top of the file belongs to a third-party plugin that `plugins` names. */
function isThirdParty({ plugins: declared }: Composition, plugins: unknown, name: string): boolean {
	if (declared.has(name) || !isObject(plugins) || !Object.hasOwn(plugins, name)) return false
	// The name may be that of another section.
	const isOtherSection = [...declared.values()].some(({ at = {} }) => Object.values(at).includes(name))
	return !isOtherSection && !Object.hasOwn(coreSections, name)
}

/** Whether an entry of `plugins` has settings that the plugin itself checks. */
function hasSettings(entry: unknown): boolean {
	return isObject(entry) && Object.keys(entry).some((key) => key !== 'enabled' && key !== 'path')
}

/**
 * The canonical path of a setting of a built-in plugin: `plugins.webhooks.per_minute` is `webhooks.per_minute`. A former name
 * becomes the present one.
 */
export function sectionPath({ plugins, renamed }: Composition, path: readonly string[]): string[] {
	const [first, name = '', setting = ''] = path
	const isElsewhere = first === 'plugins' && hasSection(plugins.get(name))
	const short = isElsewhere && !['', 'enabled', 'path'].includes(setting) ? path.slice(1) : [...path]
	const key = short.join('.')
	const present = replaced(key, renamed)
	// A name in the path may have dots.
	return present === key ? short : present.split('.')
}

/** As `sectionPath`; for a third-party plugin in this text of gateway.yaml, `notes.size` becomes `plugins.notes.size`. */
export function namePath(composition: Composition, text: string, path: readonly string[]): string[] {
	const short = sectionPath(composition, path)
	const [name = ''] = short
	const { [name]: above, plugins } = settingsIn(text)
	const isMeant = (short.length > 1 || hasContent(above)) && isThirdParty(composition, plugins, name)
	return isMeant ? ['plugins', ...short] : short
}

/** The path at which the text of gateway.yaml has the setting, or else where it belongs: beside the others of its section. */
export function placeIn(composition: Composition, text: string, path: readonly string[]): string[] {
	const place = namePath(composition, text, path)
	const short = place[0] === 'plugins' ? place.slice(1) : place
	const [name = '', setting = ''] = short
	const { [name]: above, plugins } = settingsIn(text)
	const hasBelow = isObject(plugins) && hasSettings(plugins[name])
	if (hasSection(composition.plugins.get(name)))
		return place === short && hasBelow && !hasContent(above) ? ['plugins', ...short] : place
	if (place === short || ['enabled', 'path'].includes(setting) || !isThirdParty(composition, plugins, name))
		return place
	// A whole section keeps the path that the caller gave.
	return setting === '' ? [...path] : hasContent(above) && !hasBelow ? short : place
}

function settingsIn(text: string): Section {
	const document = parseDocument(text, { schema: 'core', stringKeys: true })
	const settings: unknown = document.errors.length > 0 ? null : document.toJS()
	return isObject(settings) ? settings : {}
}

/** The text with the setting in its place. If a plugin's entry is only `true` or `false`, it becomes a map with the same state. */
export function putSetting(composition: Composition, text: string, path: readonly string[], value: unknown): string {
	const place = placeIn(composition, text, path)
	const [section = '', name = '', ...inner] = place
	const isOn = section === 'plugins' && inner.length > 0 ? settingAt(text, [section, name]) : undefined
	if (typeof isOn !== 'boolean') return setSetting(text, place, value)
	const settings = withValue(isOn ? {} : { enabled: false }, inner, value)
	return setSetting(text, [section, name], settings)
}

/** Null is a section whose settings are all commented out. */
function hasContent(section: unknown): boolean {
	return section !== undefined && section !== null && !(isObject(section) && Object.keys(section).length === 0)
}

/** Replaces the longest matching prefix. */
function replaced(path: string, prefixes: ReadonlyMap<string, string>): string {
	const [found] = [...prefixes]
		.filter(([from]) => path === from || path.startsWith(`${from}.`))
		.toSorted(([a], [b]) => b.length - a.length)
	return found ? found[1] + path.slice(found[0].length) : path
}

function withoutSetting(settings: Section, [key = '', ...rest]: readonly string[]): Section {
	const { [key]: inner, ...others } = settings
	return rest.length > 0 && isObject(inner) ? { ...settings, [key]: withoutSetting(inner, rest) } : others
}

/**
 * The text of gateway.yaml with every setting under its present name, and the renamed settings. A setting under both names stays
 * unchanged.
 */
export function migrateText(composition: Composition, text: string): { text: string; renames: Rename[] } {
	const tree = parseTree(text, (value) => value)
	const { renames } = gatherSections(composition, tree)
	return {
		text: renames.reduce((done, { from, to }) => renameSetting(done, from.split('.'), to.split('.')), text),
		renames,
	}
}
