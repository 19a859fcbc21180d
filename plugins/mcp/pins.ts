/**
 * Which definition of each tool is accepted. The first definition of a tool is accepted automatically, even if the server adds
 * the tool later. A changed definition is held back until an operator accepts it, so that a server cannot change unnoticed
 * after its review.
 */
import type { Definition } from './definitions.ts'

export interface Pin {
	/** The accepted one. */
	definition: Definition
	/** The changed definition in the server's latest list of tools. */
	held?: Definition
	/** Whether the server still has a tool of this name. The pin remains; otherwise, removing a tool for a moment would undo it. */
	listed: boolean
}

export interface Pins {
	/** In the server's order; those that it no longer lists come last. */
	tools: Pin[]
}

/** Limit of pins of tools that are no longer listed; the oldest are removed. */
const UNLISTED = 256

export interface Comparison {
	pins: Pins
	/** False if nothing changed. */
	changed: boolean
	/** Names of tools that are newly held with this definition. */
	held: string[]
}

export function compare(before: Pins | undefined, listed: readonly Definition[]): Comparison {
	const old = new Map(before?.tools.map((pin) => [pin.definition.name, pin]))
	const held: string[] = []
	const tools: Pin[] = []
	for (const definition of listed) {
		const pin = old.get(definition.name)
		old.delete(definition.name)
		if (!pin || pin.definition.digest === definition.digest) {
			tools.push({ definition, listed: true })
			continue
		}
		if (pin.held?.digest !== definition.digest) held.push(definition.name)
		tools.push({ definition: pin.definition, held: definition, listed: true })
	}
	for (const pin of [...old.values()].slice(0, UNLISTED)) tools.push({ ...pin, listed: false })
	const pins = { tools }
	return { pins, changed: JSON.stringify(pins) !== JSON.stringify(before), held }
}

/** Accepts held definitions: all, or those with the given digests. */
export function acceptHeld(before: Pins, digests?: readonly string[]): { pins: Pins; accepted: string[] } {
	const accepted: string[] = []
	const tools = before.tools.map((pin): Pin => {
		if (!pin.held || (digests && !digests.includes(pin.held.digest))) return pin
		accepted.push(pin.definition.name)
		return { definition: pin.held, listed: pin.listed }
	})
	return { pins: { tools }, accepted }
}

/** The definitions that agents get. */
export function offered(pins: Pins): Definition[] {
	return pins.tools.flatMap((pin) => (pin.listed && !pin.held ? pin.definition : []))
}
