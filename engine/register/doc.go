// Package register derives an estate's recovery posture from what it declares:
// where its stores are written, where their copies are and how each is fed,
// what a break does to all of it.
//
// A [Source] is a register's file (JSON, TOML or YAML). Only its declared part
// is believed; [Derive] makes everything else: copies, recovery points,
// exposure to the uplink, the matrix of stores × scenarios in both postures,
// the summary and the findings. The rules are those of
// reference/register-and-failure-model.md part 1; in the [Seed] profile the
// original document comes out to the byte, and [Full] adds what its policy and
// fields imply.
//
// It guarantees: a file that is wrong in any way is refused with the place of
// each problem ([Invalid]); what is accepted derives without fail; the same
// input gives the same document; derived fields of a file are compared
// ([Source.Check]) but never used, unless the estate's facts are missing and
// have to be inferred from them; no text that a terminal would obey is let in.
//
// Screens read a [Document]: its stores hold recovery points as declared
// (Objectives), designed (Design), of today (Today) and measured (LastDrill),
// its matrix the cells with every side. An [Explainer] answers why, [WhatIf]
// changes a register without touching it, [Diff] and [MakePlan] compare.
package register
