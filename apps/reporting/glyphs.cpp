#include "apps/reporting/glyphs.h"

#ifdef TESSERA_FONTS

#include <fontconfig/fontconfig.h>
#include <ft2build.h>
#include FT_FREETYPE_H

#include <algorithm>
#include <memory>
#include <vector>

namespace tessera {

namespace {

template <auto destroy> struct Destroyer {
  template <typename T> void operator()(T* object) const { destroy(object); }
};

// The system's sans-serif fonts, the preferred one first. For one thread.
class Fonts {
 public:
  Fonts() : config_(FcInitLoadConfigAndFonts()) {
    if (!config_ || FT_Init_FreeType(&library_) != 0) return;
    const std::unique_ptr<FcPattern, Destroyer<FcPatternDestroy>> wanted(
        FcNameParse(reinterpret_cast<const FcChar8*>("sans-serif:outline=true:color=false")));
    FcConfigSubstitute(config_.get(), wanted.get(), FcMatchPattern);
    FcDefaultSubstitute(wanted.get());
    FcResult result;
    set_.reset(FcFontSort(config_.get(), wanted.get(), FcFalse, nullptr, &result));
    if (set_) faces_.resize(static_cast<size_t>(set_->nfont));
  }

  // The first font's face that has the character, with letters of so many pixels; null where none has it.
  FT_Face face_with(char32_t character, int pixels) {
    for (size_t i = 0; i < faces_.size(); ++i) {
      FcCharSet* has = nullptr;
      if (FcPatternGetCharSet(set_->fonts[i], FC_CHARSET, 0, &has) != FcResultMatch ||
          FcCharSetHasChar(has, character) == FcFalse)
        continue;
      FT_Face const face = face_of(i);
      if (face != nullptr && FT_Set_Pixel_Sizes(face, 0, static_cast<FT_UInt>(pixels)) == 0) return face;
    }
    return nullptr;
  }

 private:
  // Opens the file at its first use. One that cannot be opened is left out from then on.
  FT_Face face_of(size_t i) {
    Opened& opened = faces_[i];
    if (opened.tried) return opened.face;
    opened.tried = true;
    FcChar8* file = nullptr;
    int number = 0;
    FcPatternGetInteger(set_->fonts[i], FC_INDEX, 0, &number);
    if (FcPatternGetString(set_->fonts[i], FC_FILE, 0, &file) != FcResultMatch ||
        FT_New_Face(library_, reinterpret_cast<const char*>(file), number, &opened.face) != 0)
      opened.face = nullptr;
    return opened.face;
  }

  struct Opened {
    bool tried = false;
    FT_Face face = nullptr;
  };

  std::unique_ptr<FcConfig, Destroyer<FcConfigDestroy>> config_;
  std::unique_ptr<FcFontSet, Destroyer<FcFontSetDestroy>> set_;
  FT_Library library_ = nullptr;  // lives as long as the program, with its faces
  std::vector<Opened> faces_;     // of set_
};

// Puts the glyph's bitmap where the pen stands; glyphs may overlap, and what leaves the line is cut off.
void draw(const FT_GlyphSlotRec& glyph, int pen, int baseline, LetteredLine& line) {
  const FT_Bitmap& bitmap = glyph.bitmap;
  if (bitmap.pixel_mode != FT_PIXEL_MODE_GRAY) return;
  for (int row = 0; row < static_cast<int>(bitmap.rows); ++row)
    for (int column = 0; column < static_cast<int>(bitmap.width); ++column) {
      const int y = baseline - glyph.bitmap_top + row, x = pen + glyph.bitmap_left + column;
      if (y < 0 || y >= line.height || x < 0 || x >= line.width) continue;
      uint8_t& covered =
          line.coverage[static_cast<size_t>(y) * static_cast<size_t>(line.width) + static_cast<size_t>(x)];
      covered = std::max(covered, bitmap.buffer[row * bitmap.pitch + column]);
    }
}

struct Letter {
  FT_Face face;
  char32_t character;
};

int advance_of(const FT_GlyphSlotRec& glyph) { return static_cast<int>((glyph.advance.x + 32) >> 6); }

}  // namespace

std::optional<LetteredLine> by_fonts(const std::u32string& characters, int height) {
  static Fonts fonts;
  const int pixels = 2 * height / 3, baseline = 3 * height / 4 - 1;
  std::vector<Letter> letters;
  LetteredLine line{height, 0, {}};
  for (char32_t c : characters) {
    FT_Face face = fonts.face_with(c, pixels);
    if (face == nullptr) face = fonts.face_with(c = U'?', pixels);
    if (face == nullptr) return std::nullopt;
    if (FT_Load_Char(face, c, FT_LOAD_TARGET_LIGHT) != 0) continue;
    line.width += advance_of(*face->glyph);
    letters.push_back({face, c});
  }
  line.coverage.resize(static_cast<size_t>(line.height) * static_cast<size_t>(line.width));
  int pen = 0;
  for (const Letter& letter : letters) {
    if (FT_Load_Char(letter.face, letter.character, FT_LOAD_RENDER | FT_LOAD_TARGET_LIGHT) != 0) continue;
    draw(*letter.face->glyph, pen, baseline, line);
    pen += advance_of(*letter.face->glyph);
  }
  return line;
}

}  // namespace tessera

#else

namespace tessera {

std::optional<LetteredLine> by_fonts(const std::u32string&, int) { return std::nullopt; }

}  // namespace tessera

#endif
