/** Ten skills in the forms in which skills are published; each is one folder, as in an archive. */
import type { ArchiveFile } from './archives.ts'

interface PublishedSkill {
	name: string
	files: ArchiveFile[]
	/** Folders around it in the archive. */
	prefix?: string
}

const front = (name: string, description: string, more = ''): string =>
	`---\nname: ${name}\ndescription: ${description}\n${more}---\n\n# ${name}\n\n`
const skill = (content: string): ArchiveFile => ({ name: 'SKILL.md', content })
const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d])
const long = 'Fills in, merges and splits forms. Use it when somebody has a form, asks for one, or sends one. '.repeat(
	14,
)

export const published: readonly PublishedSkill[] = [
	{
		name: 'scripts in Python and nested references',
		files: [
			skill(front('form-filler', 'Fills in forms.', 'license: Proprietary. LICENSE.txt has the terms.\n')),
			{ name: 'LICENSE.txt', content: 'All rights reserved.\n' },
			{ name: 'reference.md', content: 'See references/fields/types.md.\n' },
			{ name: 'references/fields/types.md', content: '| type | meaning |\n|---|---|\n' },
			{ name: 'scripts/fill.py', content: '#!/usr/bin/env python3\nimport sys\nprint(sys.argv)\n' },
			{ name: 'scripts/__init__.py', content: '' },
		],
	},
	{
		name: 'a long description',
		files: [skill(front('long-words', long)), { name: 'guide.md', content: 'A guide.\n' }],
	},
	{
		name: 'shell scripts, one without an extension',
		files: [
			skill(
				`${front('deploy', 'Deploys.', 'allowed-tools: Bash(git:*) Read\n')}\`\`\`bash\nscripts/deploy.sh\n\`\`\`\n`,
			),
			{ name: 'scripts/deploy.sh', content: '#!/bin/bash\nset -e\ngit push\n' },
			{ name: 'scripts/check', content: '#!/usr/bin/env -S node --test\nprocess.exit(0)\n' },
		],
	},
	{
		name: 'binary assets and fonts',
		files: [
			skill(front('poster', 'Draws posters.')),
			{ name: 'assets/logo.png', content: png },
			{ name: 'assets/fonts/Title-Bold.ttf', content: Buffer.alloc(1_300_000, 7).fill(0, 0, 16) },
			{ name: 'assets/template.html', content: '<!doctype html>\n<!-- the title goes here -->\n<h1></h1>\n' },
			{ name: 'assets/nested.zip', content: Buffer.from('PK\x03\x04\x00\x00', 'latin1') },
		],
		prefix: 'poster/',
	},
	{
		name: 'a byte order mark and line ends of Windows',
		files: [
			skill(`\uFEFF${front('windows', 'Comes from Windows.')}Follow notes.md.\n`.replaceAll('\n', '\r\n')),
			{ name: 'notes.md', content: '\uFEFFOne.\r\nTwo.\r\n' },
		],
	},
	{
		name: 'unusual front matter',
		files: [
			skill(
				'---\nname: audit\nversion: 1.2.0\ndescription: >-\n  Audits contracts: all\n  of them.\nallowed-tools:\n  - Read\n  - Grep\nmetadata:\n  author: someone\n  tags: [a, b]\nargument-hint: "[path]"\ndisable-model-invocation: true\neffort: high\nlicense:\ncompatibility: {claude: ">=2"}\n---\nAudit.\n',
			),
			{ name: 'resources/check list.md', content: '- [ ] one\n' },
		],
	},
	{
		name: 'a name outside the standard',
		files: [
			skill(front('Brand Guidelines (2026) & Co', 'Our brand.')),
			{ name: 'Größen & Maße.md', content: '12 mm\n' },
		],
	},
	{
		name: 'many rules, in the archive of a repository',
		files: [
			skill(front('best-practices', 'How we write code.')),
			...Array.from({ length: 80 }, (_, n) => ({ name: `rules/rule-${n}.md`, content: `Rule ${n}.\n`.repeat(n + 1) })),
			{ name: 'AGENTS.md', content: 'All rules.\n'.repeat(8_000) },
		],
		prefix: 'skills-0123456789abcdef/plugins/code/skills/best-practices/',
	},
	{
		name: 'long paths, and a skill within a skill',
		files: [
			skill(front('skill-maker', 'Makes skills.')),
			{ name: 'examples/SKILL.md', content: '---\nname: example\n---\n' },
			{ name: `references/${'very-'.repeat(24)}long/${'name-'.repeat(20)}.md`, content: 'Found.\n' },
			{ name: '.gitignore', content: 'node_modules\n' },
		],
	},
	{
		name: 'a document in small letters, and texts of other kinds',
		files: [
			{ name: 'SKILL.md', content: front('data', 'Looks at data.') },
			{ name: 'data/sample.csv', content: 'a;b\n1;2\n' },
			{ name: 'schemas/office.xsd', content: '<?xml version="1.0"?>\n<xs:schema/>\n' },
			{ name: 'config.json', content: '{"a": [1, 2]}' },
			{ name: 'empty.txt', content: '' },
			{ name: 'utf16.txt', content: Buffer.from('\uFEFFtext', 'utf16le') },
		],
	},
]
