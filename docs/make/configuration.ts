/** docs/configuration.md, from the schema of gateway.yaml, its example, and the settings that plugins have of their own. */
import { readFileSync } from 'node:fs'
import Joi from 'joi'
import { parse, stringify } from 'yaml'
import { applyEnvironment } from '../../config/environment.ts'
import { allKeys, explain, pathOf } from '../../config/explain.ts'
import type { Explanation } from '../../config/explain.ts'
import { takenAtStart } from '../../core/wish.ts'
import type { Plugin } from '../../core/plugin.ts'
import { code, plain, table } from './markdown.ts'

const file = new URL('../../config/gateway.example.yaml', import.meta.url)

const head = `# Configuration

All settings stand in \`~/.svc/config/gateway.yaml\` (\`SVC_HOME\` names another home folder), which the first start writes, with
everything commented out. Change the file with an editor, which knows the settings by the schema that lies beside it, or with
\`svc config set\`, which keeps comments. \`svc config explain KEY\` says what this page says, and which value is in force.

- **A change counts as you save it**, but for the sections ${takenAtStart.map(code).join(' and ')}, which wait for the next start. A port
  moves, a provider is exchanged and a plugin restarts without a run being lost.
- **A mistake changes nothing.** The last good settings stay in force; the log, the event \`config.rejected\` and
  \`/readyz?verbose\` say what is wrong, with line and column. \`svc config validate\` says it before, but for the settings of your own plugins, which only a gateway that runs can check
  (\`svc status\`). At the start it is an error (exit code 78), where the settings of a plugin of yours are at fault that plugin is left out.
- **\`\${NAME}\`** stands for a variable of the environment that the gateway was started with, \`\${NAME:-default}\` with a default,
  wherever a value stands.
- The variables below win over the file. An empty one counts as not set, but for \`SVC_LOOPBACK\`: \`1\`, \`true\`, \`yes\` or \`on\` means
  loopback, \`0\`, \`false\`, \`no\` or \`off\` means token, anything else is an error.

## Environment

`

const otherVariables: [string, string][] = [
	['SVC_HOME', 'The home folder, which holds config, data, plugins, skills and keys. Default `~/.svc`.'],
	['OPENAI_API_KEY', 'Where the file names no provider: OpenAI becomes the default one, with this key.'],
	['OPENAI_BASE_URL', "The same, for another server than OpenAI's."],
	['OPENAI_MODEL', 'The same: its model. Default `gpt-4o-mini`.'],
	['SVC_VAULT_KEY', 'The master key of the vault, 32 bytes as base64 or hex, in place of the file `keys/vault.key`.'],
	['SVC_VAULT_KEY_OLD', 'The earlier one, for the start after a change of it.'],
	['CREDENTIALS_DIRECTORY', 'Set by systemd; the master key may be its credential `svc-vault-key`.'],
	['OTEL_EXPORTER_OTLP_ENDPOINT', 'Where spans go, unless `tracing.endpoint` says it.'],
]

export async function configurationPage(): Promise<string> {
	const variables = variablesByKey()
	const example = parse(readFileSync(file, 'utf8').replace(/^(\s*)#(?! |$)/gm, '$1')) as Record<string, unknown>
	const explained = allKeys().map((key) => explain(pathOf(key.replaceAll('<name>', 'name'))))
	const sections = Map.groupBy(explained, ({ key }) => key.split('.', 1)[0] as string)
	const environment = table(
		['Variable', ''],
		[
			...[...variables]
				.filter(([key]) => !key.startsWith('providers.'))
				.map(([key, name]) => [code(name), `${code(key)}.`]),
			...otherVariables.map(([name, what]) => [code(name), what]),
		],
	)
	const parts = [...sections].map(([name, settings]) => section(name, settings, variables, example))
	return `${head}${environment}\n\n${parts.join('\n\n')}\n\n${await ownSettings()}\n`
}

function section(
	name: string,
	settings: Explanation[],
	variables: Map<string, string>,
	example: Record<string, unknown>,
): string {
	const { meaning } = explain([name])
	const rows = settings.map((one) => [
		code(one.key),
		[plain(one.meaning), variables.has(one.key) ? `Variable: ${code(variables.get(one.key) as string)}.` : '']
			.join(' ')
			.trim(),
		one.type.replaceAll(' | ', ', '),
		shown(one.default),
	])
	const late = (takenAtStart as readonly string[]).includes(name) ? '\n\nA change counts from the next start.' : ''
	const yaml = `\`\`\`yaml\n${stringify({ [name]: example[name] }, { lineWidth: 0 }).trim()}\n\`\`\``
	return `## ${name}\n\n${plain(meaning)}${late}\n\n${table(['Setting', 'Meaning', 'Values', 'Default'], rows)}\n\n${yaml}`
}

function shown(value: unknown): string {
	if (value === undefined) return ''
	if (Array.isArray(value)) return value.length > 0 ? code(value.join(', ')) : 'none'
	return typeof value === 'string' && value.includes(' ') ? value : code(String(value))
}

/** Which variable lays itself over which setting: asked with all of them set. */
function variablesByKey(): Map<string, string> {
	const everything = new Proxy<Record<string, string>>({}, { get: () => '1' })
	return applyEnvironment({}, everything).origins
}

interface OwnSetting {
	type: string
	flags?: { default?: unknown; description?: string }
	rules?: { name: string; args?: { limit: number } }[]
}

/** Those with a default come from the plugin's own place in the file; the others are handed in from the sections above. */
async function ownSettings(): Promise<string> {
	const rows: string[][] = []
	for (const name of ['events', 'legacy-chat', 'openai-api', 'mcp-server']) {
		const { default: plugin } = (await import(`../../plugins/${name}/index.ts`)) as { default: Plugin }
		const { keys = {} } = (plugin.config?.(Joi).describe() ?? {}) as { keys?: Record<string, OwnSetting> }
		const above = new Set(allKeys())
		const own = Object.entries(keys)
			.filter(([key, { flags }]) => flags?.default !== undefined && !above.has(`${name}.${key}`))
			.map(([key, { type, flags, rules = [] }]) => {
				const limit = (rule: string): string => String(rules.find((one) => one.name === rule)?.args?.limit)
				const values = type === 'boolean' ? 'true, false' : `whole number from ${limit('min')} to ${limit('max')}`
				const meaning = (flags?.description ?? '').replace(/ Default [^.]*\.$/, '')
				return [code(`plugins.${name}.${key}`), meaning, values, code(String(flags?.default))]
			})
		rows.push(...own)
	}
	return `## Settings of built-in plugins

Every feature is a plugin. \`false\` under \`plugins:\` switches one off; \`openai-api\` and \`mcp-server\` are off until \`true\` or a
setting switches them on. These have settings of their own there, beside the sections above:

${table(['Setting', 'Meaning', 'Values', 'Default'], rows)}

\`\`\`yaml
plugins:
  openai-api: true
  legacy-chat: false
  events: { max_streams: 2000 }
\`\`\``
}
