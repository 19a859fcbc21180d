/** docs/configuration.md, from the schema of gateway.yaml and its example. */
import { parse, stringify } from 'yaml'
import { appliedAtStart } from '../../config/core-sections.ts'
import { overridingVariables } from '../../config/environment.ts'
import type { Explanation } from '../../config/explain.ts'
import { allKeys, composition, explain, pathOf } from '../../core/host/config.ts'
import { exampleFile, switchedOn } from './example.ts'
import { code, plain, table } from './markdown.ts'

const head = `# Configuration

All settings are in \`~/.svc/config/gateway.yaml\` (\`SVC_HOME\` names another home folder). The first start writes this
file with all settings commented out, as in [gateway.example.yaml](../config/gateway.example.yaml). Change it with an
editor, which gets completion from the schema beside the file ([gateway.schema.json](../config/gateway.schema.json)), or
with \`svc config set\`, which keeps comments. \`svc config explain KEY\` shows the text of this page and the value in force.

- **A change applies when you save it**, except ${new Intl.ListFormat('en-GB').format(appliedAtStart.map(code))}, which apply at the
  next start. A port changes, a provider is replaced and a plugin restarts without losing a run.
- **A mistake changes nothing.** The last good settings stay in force; the log, the event \`config.rejected\` and
  \`/readyz?verbose\` report the error with line and column. \`svc config validate\` reports it beforehand: it checks the
  file like the gateway does, including the settings of your own plugins, whose code it runs, and tests the ports.
  Secrets, plugins and providers that the file names but that do not exist cause warnings. At the start an error ends
  the gateway (exit code 78); if the settings of one of your own plugins are wrong, only that plugin is left out. An
  empty file is an error: write at least a comment.
- **If one of your own plugins fails** to load or to start, it is left out, with those that need it, and reported by
  \`svc plugins\`, \`/readyz?verbose\`, the event \`plugin.failed\` and the log. An earlier instance keeps running, and the
  other changes apply. If a built-in plugin does not start, the change is refused, or the gateway does not start.
- **\`svc config get\`** shows the values in force, defaults and environment included; with \`--file\`, those of the file.
- **\`\${NAME}\`** stands for an environment variable of the gateway, \`\${NAME:-default}\` for one with a default. Use them
  for any value.
- The variables below take precedence over the file. An empty variable counts as not set. \`SVC_LOOPBACK\`: \`1\`, \`true\`,
  \`yes\` or \`on\` means loopback; \`0\`, \`false\`, \`no\` or \`off\` means token; anything else, also an empty value, is an
  error.

## Environment

`

const otherVariables: [string, string][] = [
	['SVC_HOME', 'The home folder, which holds config, data, plugins, skills and keys. Default `~/.svc`.'],
	[
		'SVC_ALLOW_SHARED_HOME',
		'`1` lets a gateway start although others can write to its home ([why not](security.md#the-home-folder)).',
	],
	...[...composition.plugins.values()].flatMap(({ variables = {} }) => Object.entries(variables)),
]

export function configurationPage(): string {
	const variables = overridingVariables(composition)
	const example = parse(switchedOn(exampleFile(composition))) as Record<string, unknown>
	const explained = allKeys().map((key) => explain(pathOf(key.replaceAll('<name>', 'name'))))
	const sections = Map.groupBy(explained, ({ key }) => key.split('.', 1)[0] as string)
	const environment = table(
		['Variable', ''],
		[
			...[...variables]
				.filter(([, name]) => !otherVariables.some(([other]) => other === name))
				.map(([key, name]) => [code(name), `${code(key)}.`]),
			...otherVariables.map(([name, what]) => [code(name), what]),
		],
	)
	const parts = [...sections].map(([name, settings]) => section(name, settings, variables, example))
	return `${head}${environment}\n\n${parts.join('\n\n')}\n\n${plugins}\n`
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
	const waiting = appliedAtStart.filter((key) => key === name || key.startsWith(`${name}.`)).map(code)
	const late = waiting.length > 0 ? `\n\nA change of ${waiting.join(', ')} applies from the next start.` : ''
	const yaml = `\`\`\`yaml\n${stringify({ [name]: example[name] }, { lineWidth: 0 }).trim()}\n\`\`\``
	return `## ${name}\n\n${plain(meaning)}${late}\n\n${table(['Setting', 'Meaning', 'Values', 'Default'], rows)}\n\n${yaml}`
}

function shown(value: unknown): string {
	if (value === undefined) return ''
	if (Array.isArray(value)) return value.length > 0 ? code(value.join(', ')) : 'none'
	return typeof value === 'string' && value.includes(' ') ? value : code(String(value))
}

const plugins = `## Settings of plugins

Every feature is a plugin. \`false\` under \`plugins:\` switches one off; \`openai-api\` and \`mcp-server\` are off until \`true\`
or a setting switches them on. The section of a plugin may be at the top of the file or under \`plugins:\`; that of a
third-party plugin too, if \`plugins:\` names it. Both places mean the same, and settings in both are an error.

\`\`\`yaml
plugins:
  openai-api: true
  legacy-chat: false
  events: { max_streams: 2000 }
\`\`\``
