/** A small, complete and valid skill for the API description. */
import { sha256 } from './folder/digest.ts'

export const exampleSkill = `---
name: meeting-notes
description: Turns the notes of a meeting into decisions and tasks.
parameters:
  - name: notes
    type: string
    required: true
    description: The notes as they were taken.
---
Read the notes. Answer with two lists: what was decided, and who does what until when.
`

const shown = {
	id: '0197a4c2-60aa-7d10-8a55-90c1d2e3f405',
	name: 'meeting-notes',
	description: 'Turns the notes of a meeting into decisions and tasks.',
	installed_at: '2026-11-02T09:30:00.000Z',
}

export const exampleOfSkill = { ...shown, status: 'quarantined' }
export const exampleDigest = sha256(exampleSkill)

const file = { path: 'SKILL.md', size: Buffer.byteLength(exampleSkill), sha256: exampleDigest, kind: 'document' }
export const exampleFile = { ...file, text: exampleSkill }

export const exampleReview = {
	...exampleOfSkill,
	digest: exampleDigest,
	source: { kind: 'inline' },
	size: Buffer.byteLength(exampleSkill),
	files: [{ ...file, change: null }],
	removed_files: [],
	left_out: [],
	tool: 'skill_meeting-notes',
	approved_at: null,
	approved_by: null,
	runtime: null,
	parameters: [{ name: 'notes', type: 'string', required: true, description: 'The notes as they were taken.' }],
	permissions: { primitives: [], hosts: [], secrets: [] },
	metadata: {},
	warnings: [],
	findings: [],
	replaces: null,
	diff: null,
	program: null,
	program_line: null,
	markdown: exampleSkill,
}
