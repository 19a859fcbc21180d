/** Changes that break a plugin: the compiler compares the types of the contract. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Emitted declarations, by file. */
type Types = Readonly<Record<string, string>>

const root = fileURLToPath(new URL('../../', import.meta.url))

/** Parts of the context that are compared by their members; run pool and queue are for built-in plugins. */
const parts = ['events', 'gateway', 'redactor', 'snapshots', 'store', 'toolbox']
const forBuiltIn = ['pool', 'queue', 'openRun', 'openWriter', 'journal']

/** What plugins receive, as types of the contract. Every member must stay, return no less and accept no less. */
const given: Record<string, (contract: string) => string> = {
	Context: (from) => `Omit<${from}.Context, ${[...parts, ...forBuiltIn].map((one) => `'${one}'`).join(' | ')}>`,
	...Object.fromEntries(parts.map((part) => [`Context_${part}`, (from: string) => `${from}.Context['${part}']`])),
	Collection: (from) => `${from}.Collection<any>`,
	...Object.fromEntries(
		['GenerationView', 'ToolCall', 'Cli', 'Api', 'Output', 'Prompts', 'Link'].map((type) => [
			type,
			(from: string) => `${from}.${type}`,
		]),
	),
}
/** What plugins provide. A value that was complete must still be complete, and accepted. */
const provided = [
	'Plugin',
	'ToolDefinition',
	'EventType',
	'ErrorCode',
	'SettingsDeclaration',
	'Command',
	'TopCommand',
	'ChannelAdapter',
	'Connection',
	'IncomingMessage',
	'Check',
]

/**
 * Methods are compared as functions, whose parameters are not bivariant. Those of `Apart` must exist: their types follow from
 * others that are compared by their members.
 */
const probe = `
import type * as Old from './released/plugins/types.d.ts'
import type * as New from './current/plugins/types.d.ts'
type Apart = 'use' | 'find' | 'extend' | 'extensions' | 'own' | 'start' | 'guard' | 'http' | 'legacy'
type ForBuiltIn = ${forBuiltIn.map((one) => `'${one}'`).join(' | ')}
type Strict<T> = T extends (...args: infer Args) => infer Result ? (...args: Args) => Result : T
type Differs<From, To, K> = K extends Apart ? never : [Strict<From>] extends [Strict<To>] ? never : K
type Lost<From, To> = {
	[K in keyof To]-?: K extends ForBuiltIn ? never : K extends keyof From ? Differs<From[K], To[K], K> : K
}[keyof To]
type Unmet<From, To> = {
	[K in keyof To]-?: K extends keyof From ? Differs<From[K], To[K], K> : {} extends Pick<To, K> ? never : K
}[keyof To] | Exclude<keyof From, keyof To>
// An error lists the members of a union of strings, but only the name of any other type.
type Named<Member> = \`\${Member & string}\`
type LostServices = {
	[S in keyof Old.Services]: S extends keyof New.Services
		? \`\${S & string}.\${Lost<New.Services[S], Old.Services[S]> & string}\`
		: S
}[keyof Old.Services]
export const Services: never = {} as Named<LostServices>
export const Extensions: never = {} as Named<Exclude<keyof Old.Extensions, keyof New.Extensions>>
`

/** Emits the types of the contract, without comments. The sources are checked elsewhere (`npm run check`). */
export function contractTypes(): Types {
	const folder = mkdtempSync(join(tmpdir(), 'svc-types-'))
	try {
		const { output } = tsc(root, ['-p', 'tsconfig.types.json', '--noCheck', '--outDir', folder, '--removeComments'])
		if (output !== '') throw new Error(output)
		const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.d.ts'))
		const isOfPlugins = (name: string): boolean => !name.startsWith('test/')
		return Object.fromEntries(
			names
				.filter(isOfPlugins)
				.toSorted()
				.map((name) => [name, structural(readFileSync(join(folder, name), 'utf8'))]),
		)
	} finally {
		rmSync(folder, { recursive: true, force: true })
	}
}

/** A line for each member that breaks: `contract Context.emit`. */
export function breaksOfContract(released: Types, current: Types): string[] {
	const folder = mkdtempSync(join(tmpdir(), 'svc-contract-'))
	try {
		for (const [version, types] of Object.entries({ released, current }))
			for (const [name, text] of Object.entries(types)) {
				const file = join(folder, version, name)
				mkdirSync(dirname(file), { recursive: true })
				writeFileSync(file, text)
			}
		symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
		writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
		const lines = [
			...Object.entries(given).map(([name, type]) => [name, `Lost<${type('New')}, ${type('Old')}>`]),
			...provided.map((name) => [name, `Unmet<Old.${name}, New.${name}>`]),
		].map(([name, check]) => `export const ${name}: never = {} as Named<${check}>`)
		const text = `${probe}${lines.join('\n')}\n`
		writeFileSync(join(folder, 'probe.ts'), text)
		const { output } = tsc(folder, [
			...'--noEmit --strict --exactOptionalPropertyTypes --skipLibCheck --noErrorTruncation --pretty false'.split(' '),
			...'--target esnext --module nodenext --types node --allowImportingTsExtensions'.split(' '),
			'probe.ts',
		])
		return breaksIn(output, text.split('\n'))
	} finally {
		rmSync(folder, { recursive: true, force: true })
	}
}

function breaksIn(output: string, probed: readonly string[]): string[] {
	// Lines that begin with a space are details of the one above.
	const errors = output.split('\n').filter((line) => line !== '' && !line.startsWith(' '))
	const byName = Map.groupBy(errors, (line) => {
		const row = /^probe\.ts\((\d+),/.exec(line)?.[1]
		return /^export const (\w+)/.exec(probed[Number(row) - 1] ?? '')?.[1] ?? ''
	})
	return [...byName].flatMap(([name, found]) => {
		const missing = found.find((line) => line.includes('has no exported member'))
		// The released version did not have it.
		if (missing?.includes('/released/')) return []
		if (missing) return [`contract ${name}: was removed`]
		const members = found.map((line) => /TS2322: Type '(.*)' is not assignable to type 'never'/.exec(line)?.[1])
		if (name === '' || !members.every((text) => text?.startsWith('"')))
			throw new Error(`the types cannot be compared: ${found.join('\n')}`)
		const lost = members.flatMap((text) => text?.match(/"[^"]+"/g) ?? [])
		return lost.map((member) => `contract ${name.replace('_', '.')}.${member.slice(1, -1)}: changed`)
	})
}

/** Private members would make equal types of two versions differ. */
function structural(text: string): string {
	return text.replaceAll(/^\s*#private;\n/gm, '')
}

function tsc(cwd: string, args: string[]): { output: string } {
	const file = join(root, 'node_modules/typescript/bin/tsc')
	const { stdout, stderr } = spawnSync(process.execPath, [file, ...args], {
		cwd,
		encoding: 'utf8',
		maxBuffer: 64 << 20,
	})
	return { output: `${stdout}${stderr}`.trim() }
}
